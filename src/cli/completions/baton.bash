# bash completion for baton: source <(baton completion bash)

_baton() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local common="--json --store --region --owner --help" i noun="" verb="" words=""
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      # What follows is the user's own command.
      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); fi
      return
    fi
    [[ ${COMP_WORDS[i]} == -* ]] && continue
    if [[ -z $noun ]]; then noun=${COMP_WORDS[i]}; elif [[ -z $verb ]]; then verb=${COMP_WORDS[i]}; fi
  done

  case $previous in
    --mode)
      mapfile -t COMPREPLY < <(compgen -W "exclusive shared update intent IS SIX" -- "$current")
      return
      ;;
    --store | --database)
      mapfile -t COMPREPLY < <(compgen -W "sqlite: postgres://" -- "$current")
      return
      ;;
  esac

  case "$noun $verb" in
    " ") words="run elect leader lock fence store policy job node version completion --help" ;;
    "run "*)
      words="--mode --predicate --ttl --wait --at-least-for --metadata --grace --metrics -- $common"
      ;;
    "elect "*) words="--node --ttl --grace --restart --metrics -- $common" ;;
    "leader ") words="show resign transfer" ;;
    "leader show") words="$common" ;;
    "leader resign") words="--reason --timeout $common" ;;
    "leader transfer") words="--timeout $common" ;;
    "lock ") words="find show break stats" ;;
    "lock find")
      words="--subject --predicate --mode --resource --owner --limit --json --store --region --help"
      ;;
    "lock show") words="--predicate $common" ;;
    "lock break") words="--predicate --reason --now --timeout $common" ;;
    "lock stats") words="--top $common" ;;
    "fence ") words="check rebase install" ;;
    "fence check") words="--key --mode --predicate --database $common" ;;
    "fence rebase") words="--database $common" ;;
    "fence install") words="--database --json --help" ;;
    "store ") words="migrate status doctor" ;;
    "store doctor") words="--ttl $common" ;;
    "store "*) words="$common" ;;
    "policy ") words="check apply show" ;;
    "policy check" | "policy apply")
      if [[ $current != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
      fi
      words="--json --help"
      [[ $verb == check ]] || words="--timeout --replace $common"
      ;;
    "policy show") words="$common" ;;
    "job ") words="list show pause resume run skip forget" ;;
    "job run") words="--wait $common" ;;
    "job "*) words="$common" ;;
    "node ") words="list" ;;
    "node list") words="--live $common" ;;
    "completion "*) words="bash zsh fish" ;;
    "version "*) words="--json --help" ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o bashdefault -F _baton baton
