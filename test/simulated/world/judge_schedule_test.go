package world

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
)

// on sets a CronJob's schedule, in a zone.
func on(schedule, zone string) func(*batchv1.CronJob) {
	return func(cron *batchv1.CronJob) { cron.Spec.Schedule, cron.Spec.TimeZone = schedule, &zone }
}

// from begins a tape at a time.
func (tp *tape) from(at string) { tp.now = instant(at) }

func instant(at string) time.Time {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		panic(err)
	}
	return t
}

// waitsUntil lets time pass, and runs start at their times.
func (tp *tape) waitsUntil(end string, runs ...string) {
	for _, at := range runs {
		tp.now = instant(at)
		tp.finishes(tp.run(at, tp.now))
	}
	tp.now = instant(end)
	tp.judge.look(tp.now)
}

// Runs start at the times of the schedule in its zone, and at no others, also when clocks change.
func TestRunsOfTheSchedule(t *testing.T) {
	runs := func(from, until string, at ...string) func(*tape) {
		return func(tp *tape) {
			tp.from(from)
			tp.cron(on("30 2 * * *", "Europe/Berlin"))
			tp.waitsUntil(until, at...)
		}
	}
	runStreams(t, map[string]streamCase{
		"clocks are set forward, and the hour is skipped": {
			play: runs("2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z", "2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"),
		},
		"the skipped hour runs": {
			want: []string{"cron"},
			play: runs("2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z", "2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"),
		},
		"clocks are set back, and the hour runs twice": {
			play: runs("2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"),
		},
		"the hour runs once": {
			want: []string{"cron"}, play: runs("2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z", "2026-10-25T00:30:00Z"),
		},
		"a day is left out": {
			want: []string{"cron"}, play: runs("2026-06-01T12:00:00Z", "2026-06-04T12:00:00Z", "2026-06-02T00:30:00Z", "2026-06-04T00:30:00Z"),
		},
		"another zone": {
			want: []string{"cron", "cron"}, play: runs("2026-06-01T12:00:00Z", "2026-06-02T12:00:00Z", "2026-06-02T02:30:00Z"),
		},
		"every 36 hours": {play: func(tp *tape) {
			tp.from("2026-06-01T00:00:00Z")
			tp.cron(on("@every 36h", "Etc/UTC"), createdNow(tp))
			tp.waitsUntil("2026-06-04T12:00:00Z", "2026-06-02T12:00:00Z", "2026-06-04T00:00:00Z")
		}},
		"every 36 hours, too early": {want: []string{"cron"}, play: func(tp *tape) {
			tp.from("2026-06-01T00:00:00Z")
			tp.cron(on("@every 36h", "Etc/UTC"), createdNow(tp))
			tp.waitsUntil("2026-06-02T12:00:00Z", "2026-06-02T11:00:00Z")
		}},
		"after a run that started no Job": {play: func(tp *tape) {
			tp.from("2026-06-01T00:00:00Z")
			tp.cron(on("@every 25s", "Etc/UTC"), createdNow(tp))
			tp.waitsUntil("2026-06-01T00:00:51Z", "2026-06-01T00:00:25Z")
			tp.tells(instant("2026-06-01T00:00:50Z"))
			tp.reschedules("@every 90s")
			tp.waitsUntil("2026-06-01T00:02:30Z", "2026-06-01T00:02:20Z")
		}},
		"as if a run that started no Job had not been": {want: []string{"cron"}, play: func(tp *tape) {
			tp.from("2026-06-01T00:00:00Z")
			tp.cron(on("@every 25s", "Etc/UTC"), createdNow(tp))
			tp.waitsUntil("2026-06-01T00:00:51Z", "2026-06-01T00:00:25Z")
			tp.tells(instant("2026-06-01T00:00:50Z"))
			tp.reschedules("@every 90s")
			tp.waitsUntil("2026-06-01T00:02:00Z", "2026-06-01T00:01:55Z")
		}},
	})
}

// A user's Job of the CronJob is a run if it has the run's time.
func TestRunsThatAUserStarts(t *testing.T) {
	runs := func(at string) func(*tape) {
		return func(tp *tape) {
			tp.from("2026-06-01T12:00:00Z")
			tp.cron(on("30 2 * * *", "Europe/Berlin"))
			tp.finishes(tp.runBy(user, "by-hand", instant(at)))
			tp.waitsUntil("2026-06-02T12:00:00Z")
		}
	}
	runStreams(t, map[string]streamCase{
		"a user's Job has the time of a run":         {play: runs("2026-06-02T00:30:00Z")},
		"a user's Job has another time than the run": {want: []string{"cron"}, play: runs("2026-06-02T00:29:00Z")},
	})
}

// reschedules changes the CronJob's schedule, and then time passes.
func (tp *tape) reschedules(schedule string) {
	cron := tp.stored["cron"].(*batchv1.CronJob).DeepCopy()
	cron.Spec.Schedule = schedule
	tp.commit(user, "update", "cronjobs", "", cron, cron)
}

func createdNow(tp *tape) func(*batchv1.CronJob) {
	return func(cron *batchv1.CronJob) { cron.CreationTimestamp.Time = tp.now }
}

// How many missed runs start is the CronJob's choice.
func TestRunsThatAreMissedAsTheCronJobSays(t *testing.T) {
	daily := on("0 2 * * *", "Etc/UTC")
	runStreams(t, map[string]streamCase{
		"no missed one is wanted": {play: func(tp *tape) {
			tp.from("2026-06-01T12:00:00Z")
			tp.cron(daily, missing(0))
			tp.judge.hindered("", instant("2026-06-02T01:00:00Z"), 30*time.Hour)
			tp.waitsUntil("2026-06-03T12:00:00Z")
		}},
		"no missed one is wanted, and one starts": {want: []string{"cron"}, play: func(tp *tape) {
			tp.from("2026-06-01T12:00:00Z")
			tp.cron(daily, missing(0))
			tp.judge.hindered("", instant("2026-06-02T01:00:00Z"), 30*time.Hour)
			tp.now = instant("2026-06-03T07:00:00Z")
			tp.finishes(tp.run("x", instant("2026-06-03T02:00:00Z")))
		}},
		"two are wanted": {play: func(tp *tape) { missesTwo(tp, "2026-06-03T02:00:00Z", "2026-06-04T02:00:00Z") }},
		"two are wanted, and one is left out": {want: []string{"cron"}, play: func(tp *tape) {
			missesTwo(tp, "2026-06-04T02:00:00Z")
		}},
	})
}

// A run need not start while something hinders the executors. After that, the latest missed one starts.
func TestRunsThatAreMissed(t *testing.T) {
	daily := on("0 2 * * *", "Etc/UTC")
	away := func(tp *tape) {
		tp.from("2026-06-01T12:00:00Z")
		tp.cron(daily)
		tp.judge.hindered("", instant("2026-06-02T01:00:00Z"), 30*time.Hour)
	}
	runStreams(t, map[string]streamCase{
		"the latest one starts": {play: func(tp *tape) {
			away(tp)
			tp.now = instant("2026-06-03T07:00:00Z")
			tp.finishes(tp.run("x", instant("2026-06-03T02:00:00Z")))
			tp.waitsUntil("2026-06-03T12:00:00Z")
		}},
		"none starts": {want: []string{"cron"}, play: func(tp *tape) { away(tp); tp.waitsUntil("2026-06-03T12:00:00Z") }},
		"an older one starts": {want: []string{"cron"}, play: func(tp *tape) {
			away(tp)
			tp.now = instant("2026-06-03T07:00:00Z")
			tp.finishes(tp.run("x", instant("2026-06-02T02:00:00Z")))
			tp.waitsUntil("2026-06-03T12:00:00Z")
		}},
		"none may wait": {play: func(tp *tape) {
			tp.from("2026-06-01T12:00:00Z")
			tp.cron(daily, func(cron *batchv1.CronJob) { cron.Spec.StartingDeadlineSeconds = new(int64(100)) })
			tp.judge.hindered("", instant("2026-06-02T01:00:00Z"), 30*time.Hour)
			tp.waitsUntil("2026-06-03T12:00:00Z")
		}},
		"the CronJob is suspended meanwhile": {play: func(tp *tape) {
			away(tp)
			cron := tp.stored["cron"].(*batchv1.CronJob).DeepCopy()
			cron.Spec.Suspend = new(true)
			tp.commit(user, "update", "cronjobs", "", cron, cron)
			tp.waitsUntil("2026-06-03T12:00:00Z")
		}},
		"a clock was wrong two days ago": {want: []string{"cron"}, play: func(tp *tape) {
			tp.from("2026-06-01T12:00:00Z")
			tp.cron(daily)
			tp.judge.clocksSet(tp.now, time.Hour)
			tp.judge.clocksSet(tp.now, 0)
			tp.waitsUntil("2026-06-04T12:00:00Z", "2026-06-02T02:00:00Z", "2026-06-03T02:00:00Z")
		}},
		"a clock was wrong when it was due, and nothing happened for days": {play: func(tp *tape) {
			tp.from("2026-06-01T12:00:00Z")
			tp.cron(daily)
			tp.judge.clocksSet(instant("2026-06-02T01:00:00Z"), time.Hour)
			tp.judge.clocksSet(instant("2026-06-02T03:00:00Z"), 0)
			tp.waitsUntil("2026-06-03T12:00:00Z", "2026-06-03T02:00:00Z")
		}},
		"a clock became wrong after it was due": {want: []string{"cron"}, play: func(tp *tape) {
			tp.from("2026-06-01T12:00:00Z")
			tp.cron(daily)
			tp.judge.clocksSet(instant("2026-06-02T03:00:00Z"), time.Hour)
			tp.waitsUntil("2026-06-03T12:00:00Z", "2026-06-03T02:00:00Z")
		}},
		"a clock was wrong an hour ago": {play: func(tp *tape) {
			tp.from("2026-06-02T01:30:00Z")
			tp.cron(daily)
			tp.judge.clocksSet(tp.now, time.Hour)
			tp.judge.clocksSet(tp.now, 0)
			tp.waitsUntil("2026-06-02T02:30:00Z")
		}},
	})
}

// missing says how many missed runs start.
func missing(most int) func(*batchv1.CronJob) {
	return func(cron *batchv1.CronJob) {
		cron.Annotations = map[string]string{wire.Policy: fmt.Sprintf("{cronJob: {maxMissedRuns: %d}}", most)}
	}
}

// missesTwo misses the runs of two days of a CronJob that wants two. Then runs start.
func missesTwo(tp *tape, runs ...string) {
	tp.from("2026-06-01T12:00:00Z")
	tp.judge.rivals = false
	tp.cron(on("0 2 * * *", "Etc/UTC"), missing(2))
	tp.waitsUntil("2026-06-02T02:10:00Z", "2026-06-02T02:00:00Z")
	tp.judge.hindered("", instant("2026-06-03T01:00:00Z"), 30*time.Hour)
	tp.now = instant("2026-06-04T07:00:00Z")
	for _, at := range runs {
		tp.finishes(tp.run(at, instant(at)))
	}
	tp.waitsUntil("2026-06-04T12:00:00Z")
}
