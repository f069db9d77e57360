# SPDX-License-Identifier: Apache-2.0
# bash completion of nodetool(1): what it completes is what its own help says

_nodetool()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} word command='' words=''
	local -i at
	for ((at = 1; at < COMP_CWORD; at++)); do
		word=${COMP_WORDS[at]}
		case $word in
		-h | -p | -u | -pw | -pwf | --host | --port | --username | --password | --password-file) at+=1 ;;
		-*) ;;
		*)
			command=$word
			break
			;;
		esac
	done
	case $previous in
	-h | --host)
		mapfile -t COMPREPLY < <(compgen -A hostname -- "$current")
		return
		;;
	-pwf | --password-file)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	-F | --format)
		mapfile -t COMPREPLY < <(compgen -W "json yaml" -- "$current")
		return
		;;
	esac
	if [[ -z $command || $command == help ]]; then
		words=$("${COMP_WORDS[0]}" help 2>/dev/null | sed -n 's/^    \([a-z_]\{1,\}\)  *.*/\1/p')
		[[ -z $command ]] && words+=" -h -p -u -pw -pwf -pp"
	elif [[ $current == -* ]]; then
		words=$("${COMP_WORDS[0]}" help "$command" 2>/dev/null |
			sed -n '/^OPTIONS/,$s/^        \(-[^<]*\).*/\1/p' | tr -d ',')
	else
		case $command in
		gettimeout | settimeout) words="read range write counterwrite cascontention truncate misc \
			internodeconnect internodeuser internodestreaminguser" ;;
		getconcurrency | setconcurrency) words="ReadStage MutationStage CounterMutationStage \
			ViewMutationStage Native-Transport-Requests" ;;
		setlogginglevel) words="ROOT TRACE DEBUG INFO WARN ERROR OFF" ;;
		import)
			mapfile -t COMPREPLY < <(compgen -d -- "$current")
			return
			;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -F _nodetool nodetool
