# SPDX-License-Identifier: Apache-2.0
# bash completion of nodetool(1)

_nodetool_commands='help assassinate bootstrap cleanup clearsnapshot clientstats compact
	compactionhistory compactionstats datapaths decommission describecluster describering
	disableautocompaction disablebackup disablebinary disablegossip drain enableautocompaction
	enablebackup enablebinary enablegossip failuredetector flush garbagecollect gcstats
	getbatchlogreplaythrottle getcolumnindexsize getcompactionthreshold getcompactionthroughput getconcurrency
	getconcurrentcompactors getconcurrentviewbuilders getdefaultrf getendpoints
	getinterdcstreamthroughput getlogginglevels getmaxhintwindow getseeds getsnapshotthrottle
	getsstables getstreamthroughput gettimeout gettraceprobability gossipinfo info
	invalidatecountercache invalidatekeycache invalidaterowcache join listsnapshots move netstats
	profileload proxyhistograms rebuild refresh refreshsizeestimates reloadseeds reloadssl
	removenode repair ring scrub setcachecapacity setcachekeystosave setcompactionthreshold setcompactionthroughput
	setconcurrency setconcurrentcompactors setinterdcstreamthroughput setlogginglevel
	setstreamthroughput settimeout settraceprobability sjk snapshot status statusautocompaction
	statusbackup statusbinary statusgossip statushandoff stop stopdaemon tablehistograms tablestats
	toppartitions tpstats upgradesstables verify version'

_nodetool()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} word command=
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
	if [[ -z $command ]]; then
		case $previous in
		-h | --host) mapfile -t COMPREPLY < <(compgen -A hostname -- "$current") ;;
		-pwf | --password-file) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
		*) mapfile -t COMPREPLY < <(compgen -W "$_nodetool_commands -h -p -u -pw -pwf -pp" -- "$current") ;;
		esac
		return
	fi
	case $command in
	help) mapfile -t COMPREPLY < <(compgen -W "$_nodetool_commands" -- "$current") ;;
	gettimeout | settimeout)
		mapfile -t COMPREPLY < <(compgen -W "read range write counterwrite cascontention truncate misc \
			internodeconnect internodeuser internodestreaminguser" -- "$current")
		;;
	getconcurrency | setconcurrency)
		mapfile -t COMPREPLY < <(compgen -W "ReadStage MutationStage CounterMutationStage \
			ViewMutationStage Native-Transport-Requests" -- "$current")
		;;
	setlogginglevel) mapfile -t COMPREPLY < <(compgen -W "ROOT TRACE DEBUG INFO WARN ERROR OFF" -- "$current") ;;
	tpstats | tablestats | compactionhistory)
		if [[ $previous == -F ]]; then
			mapfile -t COMPREPLY < <(compgen -W "json yaml" -- "$current")
		else
			mapfile -t COMPREPLY < <(compgen -W "-F" -- "$current")
		fi
		;;
	clientstats) mapfile -t COMPREPLY < <(compgen -W "--all --by-protocol --client-options --clear-history" -- "$current") ;;
	snapshot) mapfile -t COMPREPLY < <(compgen -W "-t -cf -kt -sf --ttl" -- "$current") ;;
	clearsnapshot) mapfile -t COMPREPLY < <(compgen -W "-t --all" -- "$current") ;;
	esac
}

complete -F _nodetool nodetool
