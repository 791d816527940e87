
_nyquist_or_event() {
    _nyquist_events || _nyquist "$@"
}

complete -F _nyquist_or_event -o bashdefault -o default nyquist
