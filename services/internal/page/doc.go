// Package page serves what the executor knows as a page for people: the Jobs with their
// state, the life of one Job, the CronJobs as a calendar, and the health of engine and
// queues. The page shows no pod template and no annotation, and it changes nothing.
//
// The data come from the executor's caches. While a page is open, one snapshot a second is
// made for all of them, and each gets what is new to it as a server-sent event. While none
// is open, nothing is made and nothing is kept.
package page
