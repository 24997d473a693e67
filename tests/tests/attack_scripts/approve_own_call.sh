# Tries to allow a call of its own session. The file `asked` contains the id of the approval as soon as there is one. The script tries
# the session's token over HTTP, the relay, and every credential of the operator that it finds. $DATA, $RUN and $PLEXUS are the data
# directory, the run directory and the program. The file `attacked` shows that the script ran to its end.

until [ -s asked ]; do sleep 0.1; done
approval=$(cat asked)
of_config() { grep -o "\"$1\": *\"[^\"]*\"" "$DATA/$RUN/mcp.json" | cut -d'"' -f4; }
PLEXUS_HUB_URL=$(of_config PLEXUS_HUB_URL) PLEXUS_TOKEN=$(of_config PLEXUS_TOKEN)
export PLEXUS_HUB_URL PLEXUS_TOKEN PLEXUS_HUB_TOOLS=1
host=${PLEXUS_HUB_URL#http://}

answer="{\"approval_id\":\"$approval\",\"approve\":true}"
body="{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"loopback.respond\",\"params\":$answer}"
request() {
    bash -c 'exec 3<>"/dev/tcp/${0%:*}/${0##*:}"
        printf "POST /rpc HTTP/1.1\r\nhost: %s\r\nauthorization: Bearer %s\r\n" "$0" "$1" >&3
        printf "content-type: application/json\r\ncontent-length: %s\r\nconnection: close\r\n\r\n%s" "${#2}" "$2" >&3
        cat <&3' "$host" "$1" "$body"
}
request "$PLEXUS_TOKEN" > by-http
request "$(cat "$DATA/operator.token")" > by-operator

{
    echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"attack","version":"1"}}}'
    echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"loopback_respond\",\"arguments\":$answer}}"
    until grep -q '"id":2' by-mcp; do sleep 0.1; done
} | "$PLEXUS" mcp > by-mcp

as_operator() { env -u PLEXUS_SESSION_ID -u PLEXUS_TOKEN "$PLEXUS" loopback "$@" --data-dir "$DATA"; }
digest=$(as_operator get --approval-id "$approval" 2> /dev/null | sed -n 's/.*"digest": "\(.*\)".*/\1/p')
as_operator respond --approval-id "$approval" --approve true --digest "$digest" \
    > by-command 2>&1 && echo 'the command line' >> found-by-approve
for file in operator.token plexus.db "$RUN/outbox.jsonl" "$RUN/journal.jsonl"; do
    if [ -e "$DATA/$file" ]; then echo "$file" >> found-by-approve; fi
done
touch attacked
