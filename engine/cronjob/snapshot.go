package cronjob

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// eventPeriod is how long events report something that stays true. Later decisions do
// not repeat it.
const eventPeriod = time.Minute

// A snapshot is a request that passed validation, with its schedule and time zone
// parsed. It is made by newSnapshot only, and never changed. Later code may
// rely on this:
//
//  1. every message that it reads is present;
//  2. enums have known values, and every Job an outcome;
//  3. UIDs have 16 bytes and no two Jobs share one;
//  4. jobs are in order of name, then UID.
type snapshot struct {
	req    *jobpolicyv1.DecideCronJobRequest
	spec   *jobpolicyv1.CronJobSpec
	status *jobpolicyv1.CronJobStatus
	now    time.Time
	jobs   []*jobpolicyv1.OwnedJob
	// options are nil if the CronJob asks for none, or if they are lost.
	options *jobpolicyv1.CronJobOptions
	// Of a CronJob whose options are lost, the zero value: a schedule means something only
	// with its options.
	timetable
}

func newSnapshot(req *jobpolicyv1.DecideCronJobRequest) *snapshot {
	s := &snapshot{
		req:     req,
		spec:    req.GetSpec(),
		status:  req.GetStatus(),
		now:     req.GetNow().AsTime(),
		jobs:    slices.SortedFunc(slices.Values(req.GetJobs()), byName),
		options: req.GetSpec().GetOptions(),
	}
	if s.status == nil {
		s.status = &jobpolicyv1.CronJobStatus{}
	}
	if !s.optionsLost() {
		s.timetable = readTimetable(s.spec)
	}
	return s
}

// scheduleSeen is time zone and schedule as the message ObservedSchedule records them, or
// their digest if they would not fit.
func (s *snapshot) scheduleSeen() string {
	seen := "- " + s.spec.GetSchedule()
	if s.spec.TimeZone != nil {
		seen = s.spec.GetTimeZone() + " " + s.spec.GetSchedule()
	}
	if len(seen) > maxTextBytes {
		return fmt.Sprintf("sha256 %x", sha256.Sum256([]byte(seen)))
	}
	return seen
}

// isRecent reports whether something that has been true since then is still reported in
// events.
func (s *snapshot) isRecent(since time.Time) bool { return s.now.Before(since.Add(eventPeriod)) }

func byName(a, b *jobpolicyv1.OwnedJob) int {
	if c := strings.Compare(a.GetName(), b.GetName()); c != 0 {
		return c
	}
	return strings.Compare(string(a.GetUid()), string(b.GetUid()))
}

// later returns the later of two times; nil is before all.
func later(a, b *timestamppb.Timestamp) *timestamppb.Timestamp {
	if a == nil || (b != nil && b.AsTime().After(a.AsTime())) {
		return b
	}
	return a
}

// wholeSeconds is the time as a status keeps it. A status with fractions would differ from the
// one that was written, again and again.
func wholeSeconds(at *timestamppb.Timestamp) *timestamppb.Timestamp {
	if at.GetNanos() == 0 {
		return at
	}
	return &timestamppb.Timestamp{Seconds: at.GetSeconds()}
}
