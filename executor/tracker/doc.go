// Package tracker keeps the facts about the pods of one Job up to date, one
// event at a time.
//
// A Tracker belongs to a Job's UID, never to its name (invariant I8). It is fed
// from three sides: the watch, the responses to the executor's own writes, and
// live lists. Observations are ordered by resource version for each pod, so it
// does not matter which side is first, and an own write is part of the very
// next View without waiting for the watch to echo it.
//
// An event costs O(1): the old record's share in the counts is taken away, and
// the new one's added. A View costs O(rows listed, and index ranges), and O(pods)
// only if rows of active pods are asked for or more pods are unaccounted for than
// it lists.
package tracker
