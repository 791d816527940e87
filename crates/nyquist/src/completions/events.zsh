_nyquist_events() {
    compset -P '*,'
    compadd -- ${(f)"$(nyquist list --names 2>/dev/null)"}
}

