//! The HTTP server that a profile viewer asks for profiles, symbols, source and assembly.
