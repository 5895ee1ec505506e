// Package tracker keeps the facts about the pods of one Job up to date, one event at a
// time.
//
// A Tracker belongs to a Job's UID, never to its name (invariant I8). It gets observations
// from three sources: the watch, the responses to the executor's writes, and lists. It
// orders the observations of each pod by resource version, so the sources may come in any
// order. A write of the executor is part of the next View; the View does not wait for the
// watch.
//
// An event costs O(1): the tracker takes the pod's old version out of a counter and adds the
// new one (proto/podfacts; pods.uncount and count). A View costs O(rows + index ranges). It costs
// O(pods) only if it lists active pods or cannot list all unaccounted pods.
package tracker
