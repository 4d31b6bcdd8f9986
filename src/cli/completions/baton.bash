# bash completion for baton: source <(baton completion bash)

# The names of locks, jobs or elections in the store of this command line, which is in the environment
# of the command that is asked: other users see its words.
_baton_names() {
  local url="" names=()
  # What the shell would change first is not known here.
  [[ $COMP_LINE != *--region* && $COMP_LINE != *--store*[\$\`\'\"\\]* ]] || return
  if [[ $COMP_LINE =~ --store[=[:space:]]+([^[:space:]]+)[[:space:]] ]]; then
    url=${BASH_REMATCH[1]}
  fi
  mapfile -t names < <(
    [[ -z $url ]] || export BATON_STORE=$url
    timeout 2 baton completion "$1" 2>/dev/null </dev/null
  )
  mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$current")
}

_baton() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local common="--json --store --region --owner --help" i word noun="" verb="" given=no named=yes words=""
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -- && $i -lt $COMP_CWORD ]]; then
      # What follows is the user's own command.
      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); fi
      return
    fi
    # Neither options nor their values, which bash splits at colons: a URL is several words.
    [[ $word == -* || $word == [:=] || ${COMP_WORDS[i - 1]} == [:=] ]] && continue
    case ${COMP_WORDS[i - 1]} in
      --json | --help | --version | --check | --quiet | --now | --key | --restart | --live | \
        --replace | --watch | --all | --dry-run | --yes | --preempt | --never-lead | --each | \
        --force | --no-wait | --progress | --sql) ;;
      --*) continue ;;
    esac
    if [[ $i -eq $COMP_CWORD ]]; then
      named=$given # this word is neither an option nor the value of one
      break
    fi
    if [[ -z $noun ]]; then noun=$word; elif [[ -z $verb ]]; then verb=$word; else given=yes; fi
  done

  case $previous in
    --outbox)
      words="postgres:// sqlite:"
      compopt -o nospace 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
      return
      ;;
    --broker)
      words="rabbitmq:// rabbitmqs:// embedded:"
      compopt -o nospace 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
      return
      ;;
    --mode)
      words="exclusive shared update intent IS SIX"
      [[ $noun != relay ]] || words="partitioned leader"
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
      return
      ;;
    --store)
      words="sqlite: postgres:// postgres-advisory:// redis:// etcd:// k8s://"
      compopt -o nospace 2>/dev/null # the rest of the URL follows
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
      return
      ;;
    --broker)
      words="embedded: rabbitmq:// rabbitmqs://"
      compopt -o nospace 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
      return
      ;;
    --database)
      words="sqlite: postgres://"
      [[ $noun != fence ]] || words+=" redis:// redis+unix://"
      compopt -o nospace 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
      return
      ;;
  esac

  if [[ $named == no ]]; then
    case "$noun $verb" in
      "run " | hold\ * | "lock show" | "lock break" | "lock forget") _baton_names locks ;;
      "elect " | leader\ ?*) _baton_names elections ;;
      "job list") ;;
      job\ ?*) _baton_names jobs ;;
    esac
    [[ ${#COMPREPLY[@]} -eq 0 ]] || return 0
  fi

  case "$noun $verb" in
    " ")
      words="run hold elect leader cron lock fence store policy job node partition outbox inbox dlq"
      words+=" processor relay topology queue broker help version completion --version $common"
      ;;
    "help "*)
      words="run hold elect leader cron lock fence store policy job node partition outbox inbox dlq"
      words+=" processor relay topology queue broker version completion --help"
      ;;
    "run "*)
      words="--mode --predicate --ttl --wait --at-least-for --metadata --grace --quiet"
      words+=" --busy-exit-code --metrics -- $common"
      ;;
    "hold "*)
      words="--mode --predicate --ttl --wait --at-least-for --metadata --note --ordinal"
      words+=" --if-ordinal-below --progress --metrics $common"
      ;;
    "elect "*)
      words="--node --ttl --grace --restart --priority --preempt --healthy-if --never-lead --metrics"
      words+=" -- $common"
      ;;
    "leader ") words="show is-me resign transfer --help" ;;
    "leader show") words="$common" ;;
    "leader is-me") words="--node $common" ;;
    "leader resign") words="--reason --timeout $common" ;;
    "leader transfer") words="--timeout $common" ;;
    "cron "*)
      if [[ $current != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
      fi
      words="--check --import --output --user --node --role --workers --log-format --log-level"
      words+=" --metrics $common"
      ;;
    "lock ") words="find list show break forget stats --help" ;;
    "lock find")
      words="--subject --predicate --mode --resource --owner --limit --watch --json --store --region"
      words+=" --help"
      ;;
    "lock list") words="--limit --watch --json --store --region --help" ;;
    "lock show") words="--predicate $common" ;;
    "lock break") words="--predicate --reason --now --timeout $common" ;;
    "lock forget") words="--damaged --key --predicate $common" ;;
    "lock stats") words="--top $common" ;;
    "fence ") words="check rebase install --help" ;;
    "fence check") words="--key --mode --predicate --database $common" ;;
    "fence rebase") words="--database $common" ;;
    "fence install") words="--database --json --help" ;;
    "store ") words="migrate status doctor --help" ;;
    "store migrate") words="--dry-run --sql $common" ;;
    "store doctor") words="--ttl $common" ;;
    "store "*) words="$common" ;;
    "policy ") words="check apply show --help" ;;
    "policy check" | "policy apply")
      if [[ $current != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
      fi
      words="--json --help"
      [[ $verb == check ]] || words="--timeout --replace $common"
      ;;
    "policy show") words="$common" ;;
    "job ") words="list show history pause resume run skip forget --help" ;;
    "job run") words="--wait $common" ;;
    "job history") words="--limit $common" ;;
    "job "*) words="$common" ;;
    "node ") words="list --help" ;;
    "node list") words="--live $common" ;;
    "partition ") words="list --help" ;;
    "partition list") words="$common" ;;
    "outbox ") words="install status list show retry discard clean --help" ;;
    "outbox status") words="--watch --database --json --help" ;;
    "outbox list")
      words="--type --aggregate --error --older-than --status --all --limit --after --database"
      words+=" --json --help"
      ;;
    "outbox retry" | "outbox discard")
      words="--type --aggregate --error --older-than --status --all --dry-run --yes --database"
      words+=" --json --help"
      ;;
    "outbox clean") words="--keep --database --json --help" ;;
    "outbox "*) words="--database --json --help" ;;
    "inbox ") words="install status list show --help" ;;
    "inbox install") words="--database --json --help" ;;
    "inbox list")
      words="--type --aggregate --error --older-than --consumer --status --all --limit --after"
      words+=" --database --json --help"
      ;;
    "inbox "* | "dlq show") words="--consumer --database --json --help" ;;
    "dlq ") words="list show redrive discard export --help" ;;
    "dlq list")
      words="--type --aggregate --error --older-than --consumer --each --limit --after"
      words+=" --database --json --help"
      ;;
    "dlq "*)
      words="--type --aggregate --error --older-than --consumer --database --json --help"
      [[ $verb == export ]] || words+=" --all --dry-run --yes"
      [[ $verb != redrive ]] || words+=" --rate --force"
      ;;
    "processor ") words="install list show pause resume reset rebuild --help" ;;
    "processor reset") words="--yes --database --json --help" ;;
    "processor rebuild") words="--no-wait --database --json --help" ;;
    "processor "*) words="--database --json --help" ;;
    "relay "*)
      words="--outbox --broker --name --mode --topology --ttl --max-attempts --first-delay"
      words+=" --on-failed --keep --log-format --log-level --metrics $common"
      ;;
    "topology ") words="plan apply check --help" ;;
    "queue ") words="list --help" ;;
    "broker ") words="doctor --help" ;;
    "topology "* | "queue list" | "broker doctor")
      if [[ $current != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
      fi
      words="--broker --json --help"
      ;;
    "completion "*) words="bash zsh fish --json --help" ;;
    "version "*) words="--json --help" ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o bashdefault -F _baton baton
