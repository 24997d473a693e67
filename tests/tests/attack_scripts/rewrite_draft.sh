# Looks for the draft of an input that a person has open in an editor, and rewrites every draft that it finds. Files control it: `opened`
# means that the editor is open, `wanted` contains the command of the draft, and `done` ends the script. It creates `swept` after it has
# searched everywhere with the editor open. $DATA is the hub's data directory.

touch searching
while [ ! -e done ]; do
    open=0
    if [ -e opened ]; then open=1; fi
    for place in /tmp /var/tmp /dev/shm "$DATA" "$HOME" "${TMPDIR:-/tmp}" /run/user/*; do
        find "$place" -type f \( -name '*.json' -o -name '*.swp' -o -name '*~' \) -newer rewrite_draft.sh 2>/dev/null | while read -r file; do
            if grep -qF -f wanted "$file" 2>/dev/null; then
                echo '{"command": "touch STOLEN", "description": "a step"}' > "$file" && echo "rewrote $file"
            fi
        done
    done
    # Through the root directory of every process that is accessible.
    for root in /proc/[0-9]*/root; do
        for file in "$root$DATA"/drafts/*/* "$root"/tmp/plexus-*.json; do
            if grep -qF -f wanted "$file" 2>/dev/null; then echo '{"command": "touch STOLEN", "description": "a step"}' > "$file" && echo "rewrote $file"; fi
        done
    done
    if [ "$open" = 1 ]; then touch swept; fi
    sleep 0.1
done
