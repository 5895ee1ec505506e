// Package podjob runs groups of pods as Jobs for a controller of another kind of
// object, such as a training with a leader and workers.
//
// The object controls the pods, and the controller keeps the status of each group where it
// likes. Controller.Step does the rest of the work on a group: it counts the pods, asks the
// engine, checks the answer, and carries it out in the contract's order. It stops after the
// first step of a decision that fails, and the next Step begins with what is true then. Between
// two Steps nothing is remembered except a short backoff, so the process may be killed at any time.
//
// The caller reads pods and status past every cache before each Step, so that they include
// what the last Step wrote. For thousands of pods in a group that costs too much: see
// packages tracker and executor.
package podjob
