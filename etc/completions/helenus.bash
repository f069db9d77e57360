# SPDX-License-Identifier: Apache-2.0
# bash completion of nodetool(1), helenusd(8) and helenus-stress(1)

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
	snapshot) mapfile -t COMPREPLY < <(compgen -W "-t -cf -kt" -- "$current") ;;
	clearsnapshot) mapfile -t COMPREPLY < <(compgen -W "-t --all" -- "$current") ;;
	esac
}

_helenusd()
{
	local current=${COMP_WORDS[COMP_CWORD]}
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	-c | -p) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
	*) mapfile -t COMPREPLY < <(compgen -W "-c -D -f -p -v --version -h --help" -- "$current") ;;
	esac
}

_helenus_stress()
{
	local current=${COMP_WORDS[COMP_CWORD]} option= words
	local -i at
	for ((at = 1; at < COMP_CWORD; at++)); do
		[[ ${COMP_WORDS[at]} == -* ]] && option=${COMP_WORDS[at]}
	done
	if ((COMP_CWORD == 1)); then
		words="write read mixed counter_write counter_read user help print version"
	elif [[ $current == -* || ${COMP_WORDS[1]} == help ]]; then
		words="-rate -pop -insert -col -errors -log -mode -node -port -schema -transport -graph -credentials-file"
	else
		case $option in
		-rate) words="threads= threads>= threads<= auto throttle= fixed=" ;;
		-pop) words="seq= dist= no-wrap read-lookback= contents=" ;;
		-insert) words="partitions= select-ratio= row-population-ratio= batchtype= visits= revisit=" ;;
		-col) words="n= names= size= slice timestamp=" ;;
		-errors) words="retries= ignore skip-read-validation skip-unsupported-columns" ;;
		-log) words="level= file= hdrfile= interval= no-summary no-settings" ;;
		-mode) words="native cql3 unprepared compression= protocolVersion= user= password= \
			connectionsPerHost= maxPending= workers=" ;;
		-node) words="file= whitelist datacenter=" ;;
		-port) words="native=" ;;
		-schema) words="replication( compaction( keyspace= compression=" ;;
		-transport) words="truststore= truststore-password= keystore= keystore-password=" ;;
		-graph) words="file= revision= title= op=" ;;
		*) words="n= duration= no-warmup cl= serial-cl= truncate= profile= ops( ratio(" ;;
		esac
	fi
	compopt -o nospace
	mapfile -t COMPREPLY < <(compgen -W "$words" -f -- "$current")
}

_nodetool_commands='[(-pp [(-pwf [<args>] help clearsnapshot clientstats compact compactionhistory
	compactionstats datapaths describecluster describering disableautocompaction
	disablebinary drain enableautocompaction enablebinary failuredetector flush
	gcstats getbatchlogreplaythrottle getcolumnindexsize getcompactionthroughput
	getconcurrency getconcurrentcompactors getconcurrentviewbuilders getdefaultrf
	getendpoints getinterdcstreamthroughput getlogginglevels getmaxhintwindow
	getseeds getsnapshotthrottle getsstables getstreamthroughput gettimeout
	gettraceprobability gossipinfo info invalidatecountercache invalidatekeycache
	invalidaterowcache listsnapshots netstats proxyhistograms refresh reloadssl ring
	setcompactionthroughput setconcurrency setconcurrentcompactors setlogginglevel
	settimeout settraceprobability sjk snapshot status statusautocompaction
	statusbackup statusbinary statusgossip statushandoff stop stopdaemon
	tablehistograms tablestats tpstats version'

complete -F _nodetool nodetool
complete -F _helenusd helenusd
complete -F _helenus_stress helenus-stress
