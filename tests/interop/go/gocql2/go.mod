module helenus/interop

go 1.22

require (
	github.com/apache/cassandra-gocql-driver/v2 v2.0.0
	gopkg.in/inf.v0 v0.9.1
)
