// Package jobend writes how a Job failed (message JobEnd) as a condition of the Job, and
// reads it back.
//
// A controller that creates Jobs, and acts on how they fail, needs no engine for that: it
// finds the condition of type ConditionType and calls Read. ParseClass reads a class that its users name.
package jobend
