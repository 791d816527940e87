
_cargo_nyquist_or_event() {
    _nyquist_events || _cargo__nyquist "$@"
}

complete -F _cargo_nyquist_or_event -o bashdefault -o default cargo-nyquist

# Completes `cargo nyquist`, and everything else of cargo as it was completed before.
_cargo_with_nyquist() {
    local at=1
    [[ ${COMP_WORDS[1]} == +* ]] && at=2
    if [[ $COMP_CWORD -le $at || ${COMP_WORDS[at]} != nyquist ]]; then
        [[ -z $_cargo_before_nyquist ]] || "$_cargo_before_nyquist" "$@"
        return
    fi
    local words=("${COMP_WORDS[@]:at+1}") place=$((COMP_CWORD - at))
    # Without a command, the options are those of `run`.
    if [[ ${words[0]} == -* ]]; then
        words=(run "${words[@]}")
        place=$((place + 1))
    fi
    local COMP_WORDS=(cargo-nyquist "${words[@]}") COMP_CWORD=$place
    _cargo_nyquist_or_event cargo-nyquist "$2" "$3"
}

# Adds `cargo nyquist` to the completions of cargo that are there.
_complete_cargo_nyquist() {
    if [[ $(complete -p cargo 2>/dev/null) =~ " -F "([^ ]+) && ${BASH_REMATCH[1]} != _cargo_with_nyquist ]]; then
        _cargo_before_nyquist="${BASH_REMATCH[1]}"
    fi
    complete -F _cargo_with_nyquist -o bashdefault -o default cargo
}
