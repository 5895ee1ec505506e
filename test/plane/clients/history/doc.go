// Package history records what became of the objects of a namespace, and says it in lines that are
// equal for two controllers that behave alike, whatever the timing.
//
// A [Recorder] watches Jobs, pods, events, and the kinds of a client. [Recorder.Lines] applies these
// rules:
//
//   - An object is named by its name without a random end. If several had this name one after the
//     other, each is a life of its own: "job a", "job a (2)".
//   - Of each life the changes of its conditions count (type, status, reason, message), in their
//     order, then what is left: its status without conditions, and whether it is gone. How many
//     writes that took does not count.
//   - The status of a life whose deletion began before it had ended does not count, because how
//     far it got is a matter of timing. Times count as set or not. Zeros count as absent.
//   - Pods count by Job, index, and how they ended: by themselves (Succeeded, Failed), or because
//     they were deleted (stopped). A pod that keeps a finalizer says so.
//   - An event counts once, however often it came.
//   - What a Workload of Kueue waits for at the moment does not count, nor whether Kueue says that its
//     Job is gone before the garbage collector deletes it.
//
// [Compare] reports the lines that only one side has, except those that a [Difference] names.
package history
