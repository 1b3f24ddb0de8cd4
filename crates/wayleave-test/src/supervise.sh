# Keeps one server until its owner goes.
#
#   sh -c SCRIPT supervise FOLDER READY_TEXT STOP_SIGNAL COMMAND…
#
# Standard input is a pipe only the owner writes to. When it closes, because the owner ended or
# was killed, the server is stopped and FOLDER removed. Prints `ready` when the server's log has
# said READY_TEXT, and `stopped` when the server has ended by itself.
folder=$1 ready=$2 signal=$3
shift 3
mkfifo "$folder/events"
"$@" >"$folder/events" 2>&1 </dev/null &
server=$!
while IFS= read -r line; do
    printf '%s\n' "$line" >>"$folder/log"
    case $line in *"$ready"*) echo ready ;; esac
done <"$folder/events" && echo stopped &
read -r _
kill -s "$signal" "$server" 2>/dev/null
# For the reader of the log too, which would otherwise write into the folder being removed.
wait
cd / && rm -rf "$folder"
