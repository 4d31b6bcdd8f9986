#compdef baton
# zsh completion for baton: baton completion zsh > "${fpath[1]}/_baton"

# The names of locks, jobs or elections in the store of this command line, which is in the environment
# of the command that is asked: other users see its words.
_baton_names() {
  local -a names
  local url=${${(M)words:#--store=*}#--store=}
  local at=${words[(i)--store]}
  [[ -n $url || $at -ge $CURRENT ]] || url=${words[at + 1]}
  # What the shell would change first is not known here.
  [[ -z ${(M)words:#--region*} && $url != *[\$\`\'\"\\]* ]] || return
  names=(${(f)"$(
    [[ -z $url ]] || export BATON_STORE=$url
    timeout 2 baton completion $1 2>/dev/null </dev/null
  )"})
  compadd -a names
}

_baton() {
  local -a common modes stores databases
  modes=(exclusive shared update intent IS SIX)
  stores=('sqlite\:' 'postgres\://' 'postgres-advisory\://' 'redis\://' 'etcd\://' 'k8s\://')
  databases=('sqlite\:' 'postgres\://' 'redis\://' 'redis+unix\://')
  local help='(- *)--help[show help]' json='--json[one JSON document on stdout]'
  common=(
    "$json"
    "--store=[where the locks are]:URL:($stores)"
    '--region=[the region of names]:region:'
    "$help"
  )
  local owner='--owner=[who we are]:owner:'
  local predicate='--predicate=[what is done]:predicate:'
  local mode="--mode=[how it is held]:mode:($modes)"
  local broker='--broker=[the broker of the messages]:URL:(embedded\: rabbitmq\:// rabbitmqs\://)'
  local database="--database=[the database of the data]:URL:($databases)"

  local own_database='--database=[the database of the service]:URL:(sqlite\: postgres\://)'
  local consumer='--consumer=[of this consumer]:name:'
  local -a events change
  events=(
    '--type=:type:' '--aggregate=:aggregate:' '--error=:text:' '--older-than=:time:'
    '*--status=:status:' '--all[without a filter]' "$own_database" "$json" "$help"
  )
  change=('--dry-run[only show what would be done]' '--yes[do not ask]')

  if ((CURRENT == 2)); then
    local -a nouns
    nouns=(
      'run:run a command under a lock'
      'hold:hold a lock for a program that talks to it by pipes'
      'elect:run a command while we lead'
      'leader:see who leads, and ask it to go'
      'cron:run commands on a schedule'
      'lock:look at locks, and break them'
      'fence:keep ex-holders from writing'
      'store:look after the store of the locks'
      'policy:say what may be locked, and how'
      'job:look at scheduled jobs, and tell them what to do'
      'node:look at the processes of the fleet'
      'partition:see how sets of partitions are divided'
      'outbox:see what waits to be published, mend what is stuck'
      'inbox:see the messages that are in trouble at consumers'
      'dlq:see dead letters, and redrive or discard them'
      'processor:see and mend the processors of an event log'
      'topology:make exchanges and queues as a file says'
      'queue:look at the queues of a broker'
      'broker:look after the broker'
      'relay:publish the events of an outbox to a broker'
      'help:show the help of a command'
      'version:show the version'
      'completion:print a completion script'
    )
    _describe command nouns
    compadd -- --version
    return
  fi

  local noun=${words[2]} verb=${words[3]}
  if ((CURRENT == 3)); then
    case $noun in
      leader) compadd show is-me resign transfer; return ;;
      lock) compadd find list show break forget stats; return ;;
      help)
        compadd run hold elect leader cron lock fence store policy job node partition outbox inbox dlq \
          processor relay topology queue broker version completion
        return
        ;;
      topology) compadd plan apply check; return ;;
      queue) compadd list; return ;;
      broker) compadd doctor; return ;;
      fence) compadd check rebase install; return ;;
      store) compadd migrate status doctor; return ;;
      policy) compadd check apply show; return ;;
      job) compadd list show history pause resume run skip forget; return ;;
      node) compadd list; return ;;
      partition) compadd list; return ;;
      outbox) compadd install status list show retry discard clean; return ;;
      inbox) compadd install status list show; return ;;
      dlq) compadd list show redrive discard export; return ;;
      processor) compadd install list show pause resume reset rebuild; return ;;
      completion) compadd bash zsh fish; return ;;
    esac
  fi

  case "$noun $verb" in
    run\ *)
      shift words
      ((CURRENT--))
      _arguments "$mode" "$predicate" '--ttl=[TTL]:time:' '--wait=[how long to wait]:time:' \
        '--at-least-for=[stays taken so long]:time:' '*--metadata=[key=value]:pair:' \
        '--grace=[from SIGTERM to SIGKILL]:time:' '--quiet[no word if the lock is busy]' \
        '--busy-exit-code=[if the lock is busy]:code:' \
        '--metrics=[serve metrics here]:ip\:port:' $common "$owner" '1:name:_baton_names locks' '*::command:_normal'
      return
      ;;
    hold\ *)
      shift words
      ((CURRENT--))
      _arguments "$mode" "$predicate" '--ttl=[TTL]:time:' '--wait=[how long to wait]:time:' \
        '--at-least-for=[stays taken so long]:time:' '*--metadata=[key=value]:pair:' \
        '--note=[for the next holder]:text:' '--ordinal=[of the note]:number:' \
        '--if-ordinal-below=[else superseded]:number:' '--progress[also waiting and renewed]' \
        '--metrics=[serve metrics here]:ip\:port:' $common "$owner" '*:name:_baton_names locks'
      return
      ;;
    elect\ *)
      shift words
      ((CURRENT--))
      _arguments '--node=[who we are]:node:' '--ttl=[TTL]:time:' \
        '--grace=[from SIGTERM to SIGKILL]:time:' '--restart[if the command ends by itself]' \
        '--priority=[the highest is next]:number:' '--preempt[take over from a lower priority]' \
        '--healthy-if=[lead only while this ends with 0]:command:' \
        '--never-lead[only tell who leads]' '--metrics=[serve metrics here]:ip\:port:' \
        $common "$owner" '1:election:_baton_names elections' '*::command:_normal'
      return
      ;;
    relay\ *)
      shift words
      ((CURRENT--))
      _arguments '--outbox=[the database of the outbox]:URL:(postgres\:// sqlite\:)' \
        '--broker=[where to]:URL:(rabbitmq\:// rabbitmqs\:// embedded\:)' \
        '--name=[of the outbox]:name:' '--mode=:mode:(partitioned leader)' \
        '--topology=[to declare first]:file:_files' '--ttl=[TTL]:time:' \
        '--max-attempts=:number:' '--first-delay=:time:' '--on-failed=:what:(hold skip)' \
        '--keep=:time:' \
        '--log-format=:format:(json text)' '--log-level=:level:(debug info warn error)' \
        '--metrics=[serve metrics here]:ip\:port:' $common "$owner"
      return
      ;;
    cron\ *)
      shift words
      ((CURRENT--))
      _arguments '--check[only say what is wrong]' '--import=[a crontab]:file:_files' \
        '--output=[a new file]:file:_files' '--user=:user:_users' '--node=[who we are]:node:' \
        '--role=[who shares the jobs]:role:' '--workers=:number:' \
        '--log-format=:format:(json text)' '--log-level=:level:(debug info warn error)' \
        '--metrics=[serve metrics here]:ip\:port:' $common "$owner" '1:file:_files'
      return
      ;;
    version\ * | completion\ *)
      shift words
      ((CURRENT--))
      _arguments "$json" "$help" '*:shell:'
      return
      ;;
  esac

  shift 2 words
  ((CURRENT -= 2))
  case "$noun $verb" in
    'lock find')
      _arguments "$mode" "$predicate" '--subject=:subject:' '*--resource=:prefix:' \
        '--owner=[held by]:owner:' '--limit=:number:' '--watch[show what changes]' $common '1:name:'
      ;;
    'lock list') _arguments '--limit=:number:' '--watch[show what changes]' $common ;;
    'lock show') _arguments "$predicate" $common "$owner" '1:name:_baton_names locks' ;;
    'lock break')
      _arguments "$predicate" '--reason=:reason:' '--now[do not wait]' '--timeout=:time:' \
        $common "$owner" '1:name:_baton_names locks'
      ;;
    'lock forget')
      _arguments '--damaged[only what is damaged]' '--key[NAME is a key]' "$predicate" $common \
        "$owner" '1:name:_baton_names locks'
      ;;
    'leader show') _arguments $common "$owner" '1:election:_baton_names elections' ;;
    'leader is-me') _arguments '--node=[who we are]:node:' $common "$owner" '1:election:_baton_names elections' ;;
    'leader resign')
      _arguments '--reason=:reason:' '--timeout=:time:' $common "$owner" \
        '1:election:_baton_names elections'
      ;;
    'leader transfer')
      _arguments '--timeout=:time:' $common "$owner" '1:election:_baton_names elections' \
        '2:node:'
      ;;
    'lock stats') _arguments '--top=:number:' $common "$owner" ;;
    'fence check')
      _arguments "$mode" "$predicate" "$database" '--key[NAME is a key]' $common "$owner" \
        '1:name:' '2:token:'
      ;;
    'fence rebase') _arguments "$database" $common "$owner" ;;
    'fence install') _arguments "$database" "$json" "$help" ;;
    'store migrate')
      _arguments '--dry-run[only say what would be done]' '--sql[only print the SQL]' $common "$owner"
      ;;
    'store doctor') _arguments '--ttl=[the shortest in use]:time:' $common "$owner" ;;
    store*) _arguments $common "$owner" ;;
    'job list') _arguments $common "$owner" ;;
    'job run')
      _arguments '--wait=[how long to wait]:time:' $common "$owner" '1:job:_baton_names jobs'
      ;;
    'job history') _arguments '--limit=:number:' $common "$owner" '1:job:_baton_names jobs' ;;
    job*) _arguments $common "$owner" '1:job:_baton_names jobs' ;;
    'node list') _arguments '--live[only those that are there]' $common "$owner" ;;
    'partition list') _arguments $common "$owner" '1:set:' ;;
    'outbox status') _arguments '--watch[show what changes]' "$own_database" "$json" "$help" ;;
    'outbox list') _arguments $events '--limit=:number:' '--after=:position:' '*:id:' ;;
    'outbox retry' | 'outbox discard') _arguments $events $change '*:id:' ;;
    'outbox clean') _arguments '--keep=:time:' "$own_database" "$json" "$help" ;;
    'inbox list') _arguments $events "$consumer" '--limit=:number:' '--after=:position:' '*:id:' ;;
    'dlq list')
      _arguments $events "$consumer" '--each[one a line]' '--limit=:number:' '--after=:position:' \
        '*:id:'
      ;;
    'dlq redrive')
      _arguments $events $change "$consumer" '--rate=[at most N a second]:rate:' \
        '--force[also what is old]' '*:id:'
      ;;
    'dlq discard') _arguments $events $change "$consumer" '*:id:' ;;
    'dlq export') _arguments $events "$consumer" '*:id:' ;;
    inbox* | dlq*) _arguments "$consumer" "$own_database" "$json" "$help" '1:id:' ;;
    'processor install' | 'processor list') _arguments "$own_database" "$json" "$help" ;;
    'processor reset')
      _arguments '--yes[do not ask]' "$own_database" "$json" "$help" '1:processor:'
      ;;
    'processor rebuild')
      _arguments '--no-wait[only ask for it]' "$own_database" "$json" "$help" '1:processor:'
      ;;
    processor*) _arguments "$own_database" "$json" "$help" '1:processor:' ;;
    outbox*) _arguments "$own_database" "$json" "$help" '1:id:' ;;
    topology* | 'queue list' | 'broker doctor')
      _arguments "$broker" "$json" "$help" '1:file:_files'
      ;;
    'policy check') _arguments "$json" "$help" '1:file:_files' ;;
    'policy apply')
      _arguments '--timeout=:time:' '--replace[even an unreadable one]' $common "$owner" \
        '1:file:_files'
      ;;
    'policy show') _arguments $common "$owner" ;;
  esac
}

_baton "$@"
