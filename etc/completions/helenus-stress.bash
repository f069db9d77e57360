# SPDX-License-Identifier: Apache-2.0
# bash completion of helenus-stress(1)

_helenus_stress()
{
	local current=${COMP_WORDS[COMP_CWORD]} option='' words
	local -i at
	for ((at = 1; at < COMP_CWORD; at++)); do
		[[ ${COMP_WORDS[at]} == -* ]] && option=${COMP_WORDS[at]}
	done
	if ((COMP_CWORD == 1)); then
		words="write read mixed counter_write counter_read user help print version"
	elif [[ $current == -* || ${COMP_WORDS[1]} == help ]]; then
		words="-rate -pop -insert -col -errors -log -mode -node -port -schema -transport -graph \
			-tokenrange -reporting -credentials-file"
	else
		case $option in
		-rate) words="threads= threads>= threads<= auto throttle= fixed=" ;;
		-pop) words="seq= dist= no-wrap read-lookback= contents=" ;;
		-insert) words="partitions= select-ratio= row-population-ratio= batchtype= visits= revisit=" ;;
		-col) words="n= names= size= slice timestamp=" ;;
		-errors) words="retries= ignore skip-read-validation skip-unsupported-columns" ;;
		-log) words="level= file= hdrfile= interval= no-summary no-settings show-queries query-log-file=" ;;
		-mode) words="native cql3 unprepared compression= protocolVersion= user= password= \
			connectionsPerHost= maxPending= workers=" ;;
		-node) words="file= whitelist datacenter= rack=" ;;
		-port) words="native=" ;;
		-schema) words="replication( compaction( keyspace= compression=" ;;
		-transport) words="truststore= truststore-password= keystore= keystore-password= ssl-protocol= \
			ssl-ciphers= hostname-verification=" ;;
		-tokenrange) words="wrap split-factor=" ;;
		-reporting) words="output-frequency= header-frequency=" ;;
		-graph) words="file= revision= title= op=" ;;
		*) words="n= duration= no-warmup cl= serial-cl= truncate= profile= ops( ratio(" ;;
		esac
	fi
	compopt -o nospace
	mapfile -t COMPREPLY < <(compgen -W "$words" -f -- "$current")
}

complete -F _helenus_stress helenus-stress
