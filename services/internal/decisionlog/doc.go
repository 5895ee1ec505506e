// Package decisionlog writes decision logs: what the engine was asked, what it answered,
// and what became of the answer (jobpolicy.v1.DecisionRecord). A log goes to a file, which
// is rotated, to standard output, or to an OpenTelemetry collector. It also reads them, and decides
// the requests of a log again with another engine or other settings.
//
// Writing never delays a decision. Records wait in a queue of a bounded length; if it is
// full, further records are dropped and counted.
package decisionlog
