#!/bin/bash
# Makes the pictures of README and of the pages that make a program fast, from new recordings: make.sh [FOLDER]. The programs are
# built in FOLDER, whose name is in the pictures. Needs nyquist, cargo-nyquist, chromium, curl, pngquant, g++ and python3.12.
set -euo pipefail
pictures=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
programs=$(realpath -m "${1:-$work/programs}")
trap 'kill $(jobs -p) 2> "$work/log"; wait; rm -rf "$work"' EXIT

# shot SIZE OUT URL. The first picture is thrown away: it may show a page that waits for names and source.
shot() {
    for _ in 1 2; do
        chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/browser" --window-size="$1" \
            --virtual-time-budget=20000 --screenshot="$2" "$3" 2> "$work/log"
    done
}

# small FILE: with a palette of 64 colours, without dithering, which makes files larger
small() { pngquant --force --nofs --speed 1 --output "$1" 64 "$1"; }

# serve PROFILE: sets `link` to its address in the viewer
serve() {
    rm -f "$work/link"
    nyquist load "$1" --no-open --ui builtin > "$work/link" 2>&1 &
    until link=$(grep -som1 'http://127[^ ]*' "$work/link"); do sleep 0.1; done
}

# view OUT SIZE PROFILE QUERY: what the viewer shows of a profile
view() {
    serve "$3"
    shot "$2" "$1" "$link$4"
    kill $! && wait $! || true
    small "$1"
}

# handle PROFILE FUNCTION
handle() { nyquist query "$1" functions "$2" --limit 1 --json | grep -om1 '"f-[0-9]*"' | tr -dc 0-9; }

# flames NAME PROFILE FUNCTION: the flame graph below a function
flames() {
    view "$pictures/$1.png" 1000,600 "$2" "?transform=focus-function:$(handle "$2" "$3")&icicle=1"
}

# markers NAME PROFILE: the marker chart of 60 ms, of the row `async tasks`
markers() {
    local tasks
    serve "$2"
    tasks=$(curl -sf "${link}api/v1/info" | grep -o '"thread":[0-9]*,"name":"async tasks"' | tr -dc 0-9)
    kill $! && wait $! || true
    view "$pictures/$1.png" 1000,700 "$2" "?tab=marker-chart&threads=$tasks&counters=0&range=200000000-260000000"
}

# The page refuses to be part of another page, so it is taken twice. The lower part leaves out what is in the upper one.
readme() {
    local function
    function=$(handle slow.json.gz count_words)
    view "$work/flame.png" 1200,725 slow.json.gz "?transform=focus-function:$function&icicle=1"
    view "$work/source.png" 1200,705 slow.json.gz "?tab=source&function=$function"
    cat > "$work/picture.html" <<'PAGE'
<body style="margin: 0; background: #aaa">
<div style="height: 500px; margin-bottom: 3px; overflow: hidden"><img src="flame.png" style="display: block"></div>
<div style="height: 300px; overflow: hidden"><img src="source.png" style="display: block; margin-top: -182px"></div>
PAGE
    shot 1200,803 "$pictures/viewer.png" "file://$work/picture.html"
    small "$pictures/viewer.png"
}

rust() {
    cargo run -q --release --example make_text > text.txt
    cargo nyquist -qso slow.json.gz -- text.txt > "$work/log"
    readme
    flames rust-slow slow.json.gz count_words
    cp steps/3_one_buffer.rs src/main.rs
    cargo nyquist -qso fast.json.gz -- text.txt > "$work/log"
    flames rust-fast fast.json.gz count_words
}

cpp() {
    ./make_orders.sh > orders.csv
    g++ -O2 -g -std=c++17 main.cpp -o totals
    nyquist record -qso slow.json.gz ./totals orders.csv > "$work/log"
    g++ -O2 -g -std=c++17 steps/3_no_stream.cpp -o totals
    nyquist record -qsr 4000 -o fast.json.gz ./totals orders.csv > "$work/log"
    flames cpp-slow slow.json.gz '^main$'
    flames cpp-fast fast.json.gz '^main$'
}

python() {
    local compile=(cc -O2 -g -shared -fPIC $(python3.12-config --includes) -o distance.so)
    "${compile[@]}" distance.c
    nyquist record -qso slow.json.gz python3.12 -X perf closest.py > "$work/log"
    "${compile[@]}" steps/1_numbers.c
    cp steps/2_break.py closest.py
    nyquist record -qsr 4000 -o fast.json.gz python3.12 -X perf closest.py > "$work/log"
    flames python-slow slow.json.gz '^closest$'
    flames python-fast fast.json.gz '^closest$'
}

# It is built where it is, because its layer is in this repository.
tokio() {
    local server=$work/target/release/async_server
    cargo build -q --release --manifest-path "$pictures/../../workloads/async_server/Cargo.toml" --target-dir "$work/target"
    nyquist record -qso slow.json.gz "$server" slow 20 50 > "$work/log"
    nyquist record -qso fast.json.gz "$server" joined 20 50 > "$work/log"
    markers tokio-slow slow.json.gz
    markers tokio-fast fast.json.gz
}

for part in rust:word_count cpp:order_totals python:edit_distance tokio:async_server; do
    mkdir -p "$programs"
    cp -r "$pictures/../../workloads/${part#*:}" "$programs"
    (cd "$programs/${part#*:}" && "${part%:*}")
done
