# fish completion for baton: baton completion fish > ~/.config/fish/completions/baton.fish

# The names of locks, jobs or elections in the store of this command line, which is in the environment
# of the command that is asked: other users see its words.
function __baton_names
    set -l words (commandline -opc)
    # What the shell would change first is not known here.
    string match -q -- '--region*' $words; and return
    set -l url (string replace -rf -- '^--store=' '' $words)
    if set -l at (contains -i -- --store $words)
        set url $words[(math $at + 1)]
    end
    string match -qr '[$()\'"\\\\]' -- $url; and return
    test -n "$url"; and set -lx BATON_STORE $url
    timeout 2 baton completion $argv[1] 2>/dev/null </dev/null
end

complete -c baton -f
set -l nouns run hold elect leader cron lock fence store policy job node partition outbox inbox dlq \
    processor relay topology queue broker help version completion
set -l top "not __fish_seen_subcommand_from $nouns"
complete -c baton -n $top -a run -d 'Run a command under a lock'
complete -c baton -n $top -a hold -d 'Hold a lock for a program that talks to it by pipes'
complete -c baton -n $top -a elect -d 'Run a command while we lead'
complete -c baton -n $top -a leader -d 'See who leads, and ask it to go'
complete -c baton -n $top -a cron -d 'Run commands on a schedule'
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

for pair in 'leader show is-me resign transfer' 'lock find list show break forget stats' 'fence check rebase install' \
    'store migrate status doctor' 'policy check apply show' \
    'job list show history pause resume run skip forget' 'node list' 'partition list' \
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
    -n '__fish_seen_subcommand_from run hold find check' -d 'How it is held'
complete -c baton -l predicate -x -n '__fish_seen_subcommand_from run hold lock check' \
    -d 'What is done'
complete -c baton -l ttl -x -n '__fish_seen_subcommand_from run hold elect doctor relay' -d 'TTL'
complete -c baton -l wait -x -n '__fish_seen_subcommand_from run hold' -d 'How long to wait'
complete -c baton -l at-least-for -x -n '__fish_seen_subcommand_from run hold' \
    -d 'Stays taken so long'
complete -c baton -l metadata -x -n '__fish_seen_subcommand_from run hold' -d 'key=value'
complete -c baton -l note -x -n '__fish_seen_subcommand_from hold' -d 'For the next holder'
complete -c baton -l ordinal -x -n '__fish_seen_subcommand_from hold' -d 'Of the note'
complete -c baton -l if-ordinal-below -x -n '__fish_seen_subcommand_from hold' -d 'Else superseded'
complete -c baton -l progress -n '__fish_seen_subcommand_from hold' -d 'Also waiting and renewed'
complete -c baton -l grace -x -n '__fish_seen_subcommand_from run elect' -d 'SIGTERM to SIGKILL'
complete -c baton -l quiet -n '__fish_seen_subcommand_from run' -d 'No word if the lock is busy'
complete -c baton -l busy-exit-code -x -n '__fish_seen_subcommand_from run' -d 'If the lock is busy'
complete -c baton -l node -x -n '__fish_seen_subcommand_from elect is-me cron' -d 'Who we are'
complete -c baton -l priority -x -n '__fish_seen_subcommand_from elect' -d 'The highest is next'
complete -c baton -l preempt -n '__fish_seen_subcommand_from elect' -d 'Take over from a lower priority'
complete -c baton -l healthy-if -x -n '__fish_seen_subcommand_from elect' -d 'Lead only while it ends with 0'
complete -c baton -l never-lead -n '__fish_seen_subcommand_from elect' -d 'Only tell who leads'
complete -c baton -l restart -n '__fish_seen_subcommand_from elect' -d 'If the command ends by itself'
complete -c baton -l metrics -x -n '__fish_seen_subcommand_from run hold elect relay cron' \
    -d 'IP:PORT for Prometheus'
complete -c baton -l subject -x -n '__fish_seen_subcommand_from find'
complete -c baton -l resource -x -n '__fish_seen_subcommand_from find'
complete -c baton -l limit -x -n '__fish_seen_subcommand_from find list history'
complete -c baton -l watch -n '__fish_seen_subcommand_from find list status' -d 'Show what changes'
complete -c baton -l top -x -n '__fish_seen_subcommand_from stats'
complete -c baton -l reason -x -n '__fish_seen_subcommand_from break resign'
complete -c baton -l damaged -n '__fish_seen_subcommand_from forget' -d 'Only what is damaged'
complete -c baton -l now -n '__fish_seen_subcommand_from break' -d 'Do not wait'
complete -c baton -l timeout -x -n '__fish_seen_subcommand_from break apply resign transfer'
complete -c baton -l wait -x -n '__fish_seen_subcommand_from job' -d 'How long to wait'
complete -c baton -l live -n '__fish_seen_subcommand_from node' -d 'Only live nodes'
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
complete -c baton -l sql -n '__fish_seen_subcommand_from migrate' -d 'Only print the SQL'
complete -c baton -l dry-run -n '__fish_seen_subcommand_from retry discard redrive migrate' \
    -d 'Only show what would be done'
complete -c baton -l yes -n '__fish_seen_subcommand_from retry discard redrive reset' \
    -d 'Do not ask'
complete -c baton -l no-wait -n '__fish_seen_subcommand_from rebuild' -d 'Do not wait for its end'
complete -c baton -l consumer -x -n '__fish_seen_subcommand_from inbox dlq' -d 'Only of this one'
complete -c baton -l each -n '__fish_seen_subcommand_from dlq' -d 'One a line'
complete -c baton -l rate -x -n '__fish_seen_subcommand_from redrive' -d 'At most N a second'
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
complete -c baton -l log-format -x -a 'json text' -n '__fish_seen_subcommand_from relay cron'
complete -c baton -l log-level -x -a 'debug info warn error' \
    -n '__fish_seen_subcommand_from relay cron'
complete -c baton -F -n '__fish_seen_subcommand_from policy; and __fish_seen_subcommand_from check apply'
complete -c baton -F -n '__fish_seen_subcommand_from cron'
complete -c baton -l check -n '__fish_seen_subcommand_from cron' -d 'Only say what is wrong'
complete -c baton -l import -r -F -n '__fish_seen_subcommand_from cron' -d 'A crontab'
complete -c baton -l output -r -F -n '__fish_seen_subcommand_from cron' -d 'A new file'
complete -c baton -l user -x -a '(__fish_complete_users)' -n '__fish_seen_subcommand_from cron'
complete -c baton -l role -x -n '__fish_seen_subcommand_from cron' -d 'Who shares the jobs'
complete -c baton -l workers -x -n '__fish_seen_subcommand_from cron' -d 'Commands at a time'
complete -c baton -a '(__baton_names locks)' \
    -n '__fish_seen_subcommand_from run hold; and not __fish_seen_subcommand_from job'
complete -c baton -a '(__baton_names locks)' \
    -n '__fish_seen_subcommand_from lock; and __fish_seen_subcommand_from show break forget'
complete -c baton -a '(__baton_names elections)' \
    -n '__fish_seen_subcommand_from elect; or __fish_seen_subcommand_from is-me resign transfer'
complete -c baton -a '(__baton_names elections)' \
    -n '__fish_seen_subcommand_from leader; and __fish_seen_subcommand_from show'
complete -c baton -a '(__baton_names jobs)' \
    -n '__fish_seen_subcommand_from job; and __fish_seen_subcommand_from show pause resume run skip forget history'
