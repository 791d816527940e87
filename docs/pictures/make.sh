#!/bin/bash
# Makes README's picture from a real recording: make.sh PROFILE FUNCTION OUT.png. It shows the viewer's flame graph of a profile,
# and the source of a function. Needs nyquist and chromium.
set -euo pipefail
profile=$1 function=$2 out=$(realpath -m "$3")
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2> "$folder/log"; wait; rm -rf "$folder"' EXIT
nyquist load "$profile" --no-open --ui builtin > "$folder/link" 2>&1 &
until link=$(grep -om1 'http://127[^ ]*' "$folder/link"); do sleep 0.1; done
handle=$(nyquist query "$profile" functions "$function" --limit 1 --json | grep -om1 '"f-[0-9]*"' | tr -dc 0-9)
# The page refuses to be part of another page, so it is taken twice.
shot() {
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$folder/browser" --window-size="$1" \
        --virtual-time-budget=20000 --screenshot="$2" "$3" 2> "$folder/log"
}
shot 1200,725 "$folder/flame.png" "$link?transform=focus-function:$handle&icicle=1"
shot 1200,705 "$folder/source.png" "$link?tab=source&function=$handle"
# The lower part leaves out what is above the source: it is the same as in the upper one.
cat > "$folder/picture.html" <<END
<body style="margin: 0; background: #aaa">
<div style="height: 500px; margin-bottom: 3px; overflow: hidden"><img src="flame.png" style="display: block"></div>
<div style="height: 300px; overflow: hidden"><img src="source.png" style="display: block; margin-top: -182px"></div>
END
shot 1200,803 "$out" "file://$folder/picture.html"
