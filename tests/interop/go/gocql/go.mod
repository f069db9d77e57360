module helenus/interop

go 1.22

require (
	github.com/gocql/gocql v1.7.0
	gopkg.in/inf.v0 v0.9.1
)
