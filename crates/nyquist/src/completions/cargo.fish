# Made by `nyquist setup --user`: completes `cargo nyquist` as cargo-nyquist.
function __cargo_nyquist
    set -l words (commandline -opc) (commandline -ct)
    set -e words[1..(contains -i nyquist $words)]
    # Without a command, the options are those of `run`.
    string match -q -- '-*' $words[1]; and set -p words run
    complete -C "cargo-nyquist $words"
end
complete -c cargo -n '__fish_seen_subcommand_from nyquist' -f -a '(__cargo_nyquist)'
