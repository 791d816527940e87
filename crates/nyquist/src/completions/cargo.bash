# Made by `nyquist setup --user`: completes cargo as this machine does, and `cargo nyquist`.
_load_cargo_before_nyquist() {
    local folder folders
    IFS=: read -ra folders <<< "${XDG_DATA_DIRS:-/usr/local/share:/usr/share}"
    for folder in "${folders[@]/%//bash-completion/completions}" "$(rustc --print sysroot 2>/dev/null)/etc/bash_completion.d"; do
        [[ -r $folder/cargo ]] && . "$folder/cargo" && return
    done
}
_load_cargo_before_nyquist
. "${BASH_SOURCE[0]%/*}/cargo-nyquist"
_complete_cargo_nyquist
