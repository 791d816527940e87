
# The events of `top` are two of its own.
_nyquist_or_event() {
    [[ ${COMP_WORDS[1]} != top ]] && _nyquist_events || _nyquist "$@"
}

complete -F _nyquist_or_event -o bashdefault -o default nyquist
