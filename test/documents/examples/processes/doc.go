// Command processes runs a Job whose tasks are processes on this machine. There is
// no Kubernetes: the Job is a file, and the engine, asked over gRPC, decides when to
// start how many processes, when a failed one is tried again, and when the Job has
// succeeded or failed. It is an example of a controller of one's own.
//
//	processes --engine dns:///localhost:8443 --certificates tls --job job.json
//
// The file holds a command, and a spec as in the contract:
//
//	{"command": ["sh", "-c", "exit $((RANDOM % 3))"],
//	 "spec": {"parallelism": 2, "completions": 5, "backoffLimit": 4}}
//
// The program is a loop: count, ask, carry out in one transaction, wait.
//
// The program may be killed at any time. Its processes end with it, and when it is
// started again it goes on with what the file says: each process counts once.
package main
