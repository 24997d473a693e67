# Looks for the hub's files in every known way. It writes what it finds to `found`. $DATA, $RUN, $HUB and $PLEXUS are the data directory,
# the run directory, the pid of the hub and the program. $SIGNALS is `held` if processes outside the sandbox must be invisible.

parent() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f2; }

# Looks for files of the data directory with the prefix $2. $1 names the way.
seen() {
    for file in operator.token identity.key plexus.db plexus.toml hub.json hub.sock lock "$RUN/outbox.jsonl" "$RUN/journal.jsonl" \
        "$RUN/wake" "$RUN/launch.json" "$RUN/stderr.log"; do
        if [ -e "$2$DATA/$file" ]; then echo "$1: $file" >> "$FOUND"; fi
    done
}

if [ "$1" = seen ]; then
    seen "$2" "$3"
    exit
fi

FOUND=$PWD/found
export FOUND
script=$PWD/find_hub_files.sh
again() { sh "$script" seen "$@"; }

: > found
seen plainly ''
umount "$DATA"; seen umount ''
umount -l "$DATA"; seen 'lazy umount' ''
mount -o remount,rw "$DATA"; seen remount ''
unshare -m sh -c "umount -l '$DATA'; sh '$script' seen 'umount in a mount namespace' ''"
mkdir -p place
for act in "umount '$DATA'; umount -l '$DATA'" "mount --move '$DATA' place" "mount -o remount,rw '$DATA'" \
    'umount -a' 'umount -l -a'; do
    unshare -Urm sh -c "$act; sh '$script' seen 'a user namespace, $act' ''"
done
unshare -Urm sh -c "mount --bind '$(dirname "$DATA")' place && mkdir place/found-it; ls place/data/operator.token && \
    echo 'bound by its parent' >> '$FOUND'"
unshare -Urm sh -c "mount --rbind / place; sh '$script' seen 'bound with all' '$PWD/place'"
unshare -Urm sh -c "mount --bind / place; sh '$script' seen 'bound without what is below' '$PWD/place'"
unshare -Urpfm --mount-proc sh -c "sh '$script' seen 'with processes of its own' ''"

keeper=$$
until [ "$(tr '\0' ' ' < "/proc/$keeper/cmdline" | cut -d' ' -f2)" = keep ] || [ "$keeper" -le 1 ]; do
    keeper=$(parent "$keeper")
done
# In a PID namespace the search ends at 0. Process 1 is then the nearest to a keeper.
[ "$keeper" -gt 0 ] || keeper=1
echo "keeper $keeper" >> looked-at
for process in /proc/[0-9]*; do
    seen "$process/root" "$process/root"
    if [ -e "$process/cwd/outbox.jsonl" ]; then echo "$process/cwd" >> found; fi
done
for process in "$HUB" "$keeper" 1; do
    nsenter -t "$process" -m sh "$script" seen "mounts of $process" ''
    nsenter -t "$process" -U -m sh "$script" seen "namespaces of $process" ''
    nsenter --mount="/proc/$process/ns/mnt" sh "$script" seen "mounts of $process by name" ''
    for held in "/proc/$process/fd/"* "/proc/$process/map_files/"*; do
        if [ -e "$held" ]; then echo "$held" >> found; fi
    done
    for file in environ mem maps auxv; do
        if head -c 1 "/proc/$process/$file" | grep -q .; then echo "$process $file" >> found; fi
    done
done
for held in /proc/self/fd/*; do
    case $(readlink "$held") in "$DATA"*) echo "inherited $held" >> found ;; esac
done

if [ "$SIGNALS" = held ]; then
    for process in /proc/[0-9]*; do
        case $(tr '\0' ' ' < "$process/cmdline") in
            "$PLEXUS serve"*) echo "the hub as $process" >> found ;;
            "$PLEXUS keep"*) [ "$process" = /proc/1 ] || echo "a keeper as $process" >> found ;;
        esac
    done
fi

touch "$DATA/new" && echo 'written into' >> found
mv "$DATA" "$DATA-moved" && echo 'moved away' >> found
above=$(dirname "$DATA")
mv "$above" "$above-moved" && mv "$above-moved" "$above" && echo 'moved away with what is around it' >> "$above/work/found"
echo '{}' > "$DATA/$RUN/mcp.json" && echo 'its config was written' >> found
env -u PLEXUS_SESSION_ID "$PLEXUS" loopback pending --data-dir "$DATA" && echo 'the command line' >> found

grep -q mcpServers "$DATA/$RUN/mcp.json" && echo config >> looked-at
touch "$HOME/at-home" && echo home >> looked-at
echo done >> looked-at
