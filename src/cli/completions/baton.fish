# fish completion for baton: baton completion fish > ~/.config/fish/completions/baton.fish

complete -c baton -f
set -l nouns run elect leader lock fence store policy job node partition outbox inbox dlq \
    processor relay topology queue broker help version completion
set -l top "not __fish_seen_subcommand_from $nouns"
complete -c baton -n $top -a run -d 'Run a command under a lock'
complete -c baton -n $top -a elect -d 'Run a command while we lead'
complete -c baton -n $top -a leader -d 'See who leads, and ask it to go'
complete -c baton -n $top -a lock -d 'Look at locks, and break them'
complete -c baton -n $top -a fence -d 'Keep ex-holders from writing'
complete -c baton -n $top -a store -d 'Look after the store of the locks'
complete -c baton -n $top -a policy -d 'Say what may be locked, and how'
complete -c baton -n $top -a job -d 'Look at scheduled jobs, and tell them what to do'
complete -c baton -n $top -a node -d 'Look at the processes of the fleet'
complete -c baton -n $top -a partition -d 'See how sets of partitions are divided'
complete -c baton -n $top -a outbox -d 'See what waits to be published, mend what is stuck'
complete -c baton -n $top -a inbox -d 'See the messages that are in trouble at consumers'
complete -c baton -n $top -a dlq -d 'See dead letters, and redrive or discard them'
complete -c baton -n $top -a processor \
    -d 'See and mend the processors of an event log'
complete -c baton -n $top -a topology -d 'Make exchanges and queues as a file says'
complete -c baton -n $top -a queue -d 'Look at the queues of a broker'
complete -c baton -n $top -a broker -d 'Look after the broker'
complete -c baton -n $top -a relay -d 'Publish the events of an outbox to a broker'
complete -c baton -n $top -a help -d 'Show the help of a command'
complete -c baton -n $top -a version -d 'Show the version'
complete -c baton -n $top -a completion -d 'Print a completion script'

for pair in 'leader show resign transfer' 'lock find list show break forget stats' 'fence check rebase install' \
    'store migrate status doctor' 'policy check apply show' \
    'job list show pause resume run skip forget' 'node list' 'partition list' \
    'outbox install status list show retry discard clean' 'inbox install status list show' \
    'dlq list show redrive discard export' \
    'processor install list show pause resume reset rebuild' \
    'topology plan apply check' 'queue list' 'broker doctor' 'completion bash zsh fish'
    set -l words (string split ' ' $pair)
    set -l noun $words[1]
    set -l verbs $words[2..]
    complete -c baton -a "$verbs" \
        -n "__fish_seen_subcommand_from $noun; and not __fish_seen_subcommand_from $verbs"
end

complete -c baton -l json -d 'One JSON document on stdout'
complete -c baton -l help -s h -d 'Show help'
complete -c baton -n $top -l version -s V -d 'Show the version'
complete -c baton -n '__fish_seen_subcommand_from help' -a "$nouns"
complete -c baton -l store -x -d 'Where the locks are' \
    -a 'sqlite: postgres:// postgres-advisory:// redis:// etcd:// k8s://'
complete -c baton -l broker -x -d 'The broker of the messages' \
    -a 'embedded: rabbitmq:// rabbitmqs://' -n '__fish_seen_subcommand_from topology queue broker'
complete -c baton -l region -x -d 'The region of names'
complete -c baton -l owner -x -d 'Who we are'
complete -c baton -l mode -x -a 'exclusive shared update intent IS SIX' \
    -n '__fish_seen_subcommand_from run find check' -d 'How it is held'
complete -c baton -l predicate -x -n '__fish_seen_subcommand_from run lock check' -d 'What is done'
complete -c baton -l ttl -x -n '__fish_seen_subcommand_from run elect doctor relay' -d 'TTL'
complete -c baton -l wait -x -n '__fish_seen_subcommand_from run' -d 'How long to wait'
complete -c baton -l at-least-for -x -n '__fish_seen_subcommand_from run' -d 'Stays taken so long'
complete -c baton -l metadata -x -n '__fish_seen_subcommand_from run' -d 'key=value'
complete -c baton -l grace -x -n '__fish_seen_subcommand_from run elect' -d 'SIGTERM to SIGKILL'
complete -c baton -l quiet -n '__fish_seen_subcommand_from run' -d 'No word if the lock is busy'
complete -c baton -l busy-exit-code -x -n '__fish_seen_subcommand_from run' -d 'If the lock is busy'
complete -c baton -l node -x -n '__fish_seen_subcommand_from elect' -d 'Who we are'
complete -c baton -l restart -n '__fish_seen_subcommand_from elect' -d 'If the command ends by itself'
complete -c baton -l metrics -x -n '__fish_seen_subcommand_from run elect relay' \
    -d 'IP:PORT for Prometheus'
complete -c baton -l subject -x -n '__fish_seen_subcommand_from find'
complete -c baton -l resource -x -n '__fish_seen_subcommand_from find'
complete -c baton -l limit -x -n '__fish_seen_subcommand_from find list'
complete -c baton -l watch -n '__fish_seen_subcommand_from find list status' -d 'Show what changes'
complete -c baton -l top -x -n '__fish_seen_subcommand_from stats'
complete -c baton -l reason -x -n '__fish_seen_subcommand_from break resign'
complete -c baton -l damaged -n '__fish_seen_subcommand_from forget' -d 'Only what is damaged'
complete -c baton -l now -n '__fish_seen_subcommand_from break' -d 'Do not wait'
complete -c baton -l timeout -x -n '__fish_seen_subcommand_from break apply resign transfer'
complete -c baton -l wait -x -n '__fish_seen_subcommand_from job' -d 'How long to wait'
complete -c baton -l live -n '__fish_seen_subcommand_from node' -d 'Only those that are there'
complete -c baton -l replace -n '__fish_seen_subcommand_from apply'
complete -c baton -l database -x -a 'sqlite: postgres:// redis:// redis+unix://' \
    -n '__fish_seen_subcommand_from fence' -d 'The database of the data'
complete -c baton -l database -x -a 'sqlite: postgres://' \
    -n '__fish_seen_subcommand_from outbox inbox dlq processor' -d 'The database of the service'
complete -c baton -l type -x -n '__fish_seen_subcommand_from outbox inbox dlq'
complete -c baton -l aggregate -x -n '__fish_seen_subcommand_from outbox inbox dlq'
complete -c baton -l error -x -n '__fish_seen_subcommand_from outbox inbox dlq'
complete -c baton -l older-than -x -n '__fish_seen_subcommand_from outbox inbox dlq'
complete -c baton -l status -x -n '__fish_seen_subcommand_from outbox inbox dlq'
complete -c baton -l all -n '__fish_seen_subcommand_from outbox inbox dlq' -d 'Without a filter'
complete -c baton -l after -x -n '__fish_seen_subcommand_from list' -d 'Go on behind this position'
complete -c baton -l dry-run -n '__fish_seen_subcommand_from retry discard redrive' \
    -d 'Only show what would be done'
complete -c baton -l yes -n '__fish_seen_subcommand_from retry discard redrive reset' \
    -d 'Do not ask'
complete -c baton -l no-wait -n '__fish_seen_subcommand_from rebuild' -d 'Only ask for it'
complete -c baton -l consumer -x -n '__fish_seen_subcommand_from inbox dlq' -d 'Only of this one'
complete -c baton -l each -n '__fish_seen_subcommand_from dlq' -d 'One a line'
complete -c baton -l rate -x -n '__fish_seen_subcommand_from redrive' -d 'At most so many a second'
complete -c baton -l force -n '__fish_seen_subcommand_from redrive' -d 'Also what is old'
complete -c baton -l keep -x -n '__fish_seen_subcommand_from clean relay' -d 'How long'
complete -c baton -l key -n '__fish_seen_subcommand_from check forget' -d 'NAME is a key'
complete -c baton -F -n '__fish_seen_subcommand_from topology queue broker'
complete -c baton -l outbox -x -a 'postgres:// sqlite:' -n '__fish_seen_subcommand_from relay' \
    -d 'The database of the outbox'
complete -c baton -l broker -x -a 'rabbitmq:// rabbitmqs:// embedded:' \
    -n '__fish_seen_subcommand_from relay' -d 'Where to'
complete -c baton -l name -x -n '__fish_seen_subcommand_from relay' -d 'Of the outbox'
complete -c baton -l mode -x -a 'partitioned leader' -n '__fish_seen_subcommand_from relay'
complete -c baton -l topology -r -F -n '__fish_seen_subcommand_from relay' -d 'To declare first'
complete -c baton -l max-attempts -x -n '__fish_seen_subcommand_from relay'
complete -c baton -l first-delay -x -n '__fish_seen_subcommand_from relay'
complete -c baton -l on-failed -x -a 'hold skip' -n '__fish_seen_subcommand_from relay'
complete -c baton -l log-format -x -a 'json text' -n '__fish_seen_subcommand_from relay'
complete -c baton -l log-level -x -a 'debug info warn error' -n '__fish_seen_subcommand_from relay'
complete -c baton -F -n '__fish_seen_subcommand_from policy; and __fish_seen_subcommand_from check apply'
