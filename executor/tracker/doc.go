// Package tracker holds what is known of each Job, by UID, never by name (invariant I8): its pods,
// its newest version, what was written and decided, and which steps wait.
//
// Job says who takes its one lock. The package makes no API calls, starts no goroutines and knows no
// queue.
//
// # Pods
//
// A Job gets observations of its pods from three sources: the watch, the responses to the executor's
// writes, and lists. It orders the observations of each pod by resource version, so the sources may
// come in any order. A write of the executor is part of the next View; the View does not wait for the
// watch.
//
// An event costs O(1): the pod's old version leaves a counter and the new one enters it
// (proto/podfacts; pods.uncount and count). A View costs O(rows + index ranges). It costs O(pods) only
// if it lists active pods or cannot list all unaccounted pods.
//
// # For callers of the engine
//
// A controller of another kind of object keeps one Job for each group of pods: New(key, nil), then SetPolicy
// whenever the spec changes, ObservePod, PodLeft and PodGone for each event, BeginList with End for each
// list, BeginCreate for each creation, and View for the snapshot. The other methods are the executor's, and may
// change at any time.
//
// Read job.go, then version.go (the Job itself), observe.go and pods.go, then view.go. calls.go and
// absence.go hold what calls under way and late events could show.
package tracker
