// Package views shows what the executor knows of its Jobs and CronJobs: as a page for people, and as
// lists of the last decisions, of which a query selects some. Package gauges has the metrics.
//
// The page has the Jobs with their state, the life of one Job, the CronJobs as a calendar, and the health
// of engine and queues. It shows the options of a JobPolicy, and else no pod template and no annotation, and it changes nothing. The data come
// from the executor's caches. While pages are open, one snapshot a second is made for all of them, and
// each page gets the changes since its last one as a server-sent event. While no page is open, there are
// no snapshots and nothing is kept.
package views
