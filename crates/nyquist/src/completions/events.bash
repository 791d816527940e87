
# Completes names of events. They have colons, which end a word for bash.
_nyquist_events() {
    local line="${COMP_LINE:0:COMP_POINT}" word before=""
    [[ $line =~ [[:space:]](-e|--event)(=|[[:space:]]+)([^[:space:]]*)$ ]] || return 1
    word="${BASH_REMATCH[3]}"
    [[ $word == *,* ]] && before="${word%,*},"
    COMPREPLY=($(compgen -P "$before" -W "$(nyquist list --names 2>/dev/null)" -- "${word#"$before"}"))
    # Bash replaces only what stands behind the last colon.
    if [[ $COMP_WORDBREAKS == *:* && $word == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
    fi
}
