# SPDX-License-Identifier: Apache-2.0
# bash completion of helenusd(8)

_helenusd()
{
	local current=${COMP_WORDS[COMP_CWORD]}
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	-c | -p) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
	*) mapfile -t COMPREPLY < <(compgen -W "-c -D -f -p -v --version -h --help" -- "$current") ;;
	esac
}

complete -F _helenusd helenusd
