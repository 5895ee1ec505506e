module jobpolicy.dev/engine

go 1.26.0

replace jobpolicy.dev/proto => ../proto

require (
	github.com/cockroachdb/datadriven v1.0.3
	github.com/google/go-cmp v0.7.0
	github.com/netresearch/go-cron v0.9.1
	google.golang.org/protobuf v1.36.12
	jobpolicy.dev/proto v0.0.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/pmezard/go-difflib v1.0.1-0.20181226105442-5d4384ee4fb2 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
)
