package answer

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func ranges(bounds ...int32) *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	for i := 0; i < len(bounds); i += 2 {
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: bounds[i], Last: bounds[i+1]})
	}
	return set
}

// changesOf is a decision on a Job of ten indexes that creates two of them.
func changesOf(spoil func(*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse)) error {
	request := &jobpolicyv1.DecideJobRequest{Spec: &jobpolicyv1.JobSpec{
		CompletionMode: jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED, Completions: proto.Int32(10), BackoffLimitPerIndex: proto.Int32(1),
	}}
	decision := &jobpolicyv1.DecideJobResponse{
		Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY,
		Create:      &jobpolicyv1.CreatePods{Count: 2, Indexes: ranges(0, 0, 1, 1)},
	}
	spoil(request, decision)
	return Check(request, decision)
}

// ends are n pods to end that may be active for so many seconds.
func ends(n int, seconds int64) (pods []*jobpolicyv1.EndPod) {
	for range n {
		pods = append(pods, &jobpolicyv1.EndPod{ActiveDeadlineSeconds: seconds})
	}
	return pods
}

func TestCheckAllowsWhatTheRequestAllows(t *testing.T) {
	cases := map[string]func(*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse){
		"two indexes": func(*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse) {},
		"failures that a pod inherits": func(_ *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			d.Create.FailureCounts = []*jobpolicyv1.IndexFailureCount{{Index: 1, Failures: 1}}
		},
		"500 deletions": func(_ *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			d.Create, d.Delete = nil, make([]*jobpolicyv1.DeletePod, 500)
		},
		"500 ends": func(_ *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			d.Create, d.End = nil, ends(500, math.MaxInt32)
		},
		"501 pods that the settings allow": func(r *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			r.Spec, r.Settings = &jobpolicyv1.JobSpec{}, &jobpolicyv1.Settings{MaxPodChanges: 501}
			d.Create = &jobpolicyv1.CreatePods{Count: 501}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			if err := changesOf(change); err != nil {
				t.Error(err)
			}
		})
	}
}

// Pods that the request does not allow are refused, and the error names the field. No caller
// can list them: there may be two thousand million.
func TestCheckRefusesChangesThatTheRequestDoesNotAllow(t *testing.T) {
	type spoiler = func(*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse)
	create := func(count int32, set *jobpolicyv1.IndexSet) spoiler {
		return func(_ *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			d.Create = &jobpolicyv1.CreatePods{Count: count, Indexes: set}
		}
	}
	counts := func(counts ...*jobpolicyv1.IndexFailureCount) spoiler {
		return func(_ *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			d.Create.FailureCounts = counts
		}
	}
	deletes := func(n int) spoiler {
		return func(_ *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			d.Create, d.Delete = nil, make([]*jobpolicyv1.DeletePod, n)
		}
	}
	cases := map[string]struct {
		spoil spoiler
		field string
	}{
		"fewer pods than none": {create(-1, nil), "create.count"},
		"no pods":              {create(0, nil), "create.count"},
		"pods that may not be active": {func(_ *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			d.Create.ActiveDeadlineSeconds = new(int64(0))
		}, "create.active_deadline_seconds"},
		"too many pods":                          {create(501, ranges(0, 500)), "create.count"},
		"as many pods as a count can say":        {create(math.MaxInt32, nil), "create.count"},
		"too many deletions":                     {deletes(501), "delete"},
		"a range below 0":                        {create(2, ranges(-1, 0)), "create.indexes.ranges[0]"},
		"a range that ends before it begins":     {create(2, ranges(0, 3, 7, 5)), "create.indexes.ranges[1]"},
		"ranges that overlap":                    {create(4, ranges(0, 1, 1, 2)), "create.indexes.ranges[1]"},
		"ranges out of order":                    {create(2, ranges(3, 3, 1, 1)), "create.indexes.ranges[1]"},
		"an index beyond completions":            {create(1, ranges(10, 10)), "create.indexes.ranges[0]"},
		"ranges that add up only by an overflow": {create(1, ranges(0, math.MaxInt32)), "create.indexes.ranges[0]"},
		"other than count indexes":               {create(3, ranges(0, 1)), "create.indexes"},
		"no indexes":                             {create(3, nil), "create.indexes"},
		"failures of an index that is not created": {
			counts(&jobpolicyv1.IndexFailureCount{Index: 9}), "create.failure_counts[0].index",
		},
		"failures of an index twice": {
			counts(&jobpolicyv1.IndexFailureCount{}, &jobpolicyv1.IndexFailureCount{}), "create.failure_counts[1].index",
		},
		"fewer failures than none": {counts(&jobpolicyv1.IndexFailureCount{Failures: -1}), "create.failure_counts[0]"},
		"failures without a limit": {func(r *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			r.Spec.BackoffLimitPerIndex = nil
			d.Create.FailureCounts = []*jobpolicyv1.IndexFailureCount{{}}
		}, "create.failure_counts"},
		"creations and deletions": {func(_ *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			d.Delete = make([]*jobpolicyv1.DeletePod, 1)
		}, "create"},
		"indexes of a Job without them": {func(r *jobpolicyv1.DecideJobRequest, _ *jobpolicyv1.DecideJobResponse) {
			r.Spec.CompletionMode = jobpolicyv1.CompletionMode_COMPLETION_MODE_NON_INDEXED
		}, "create.indexes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := changesOf(tc.spoil); err == nil || !strings.HasPrefix(err.Error(), tc.field+" ") {
				t.Errorf("got error %v, want one about %s", err, tc.field)
			}
		})
	}
}

// Pods to end are bounded together with deletions, and each has at least a second.
func TestCheckRefusesEndsThatTheRequestDoesNotAllow(t *testing.T) {
	cases := map[string]struct {
		deletes, ends int
		seconds       int64
		creates       bool
		field         string
	}{
		"creations and ends":                      {ends: 1, seconds: 1, creates: true, field: "create"},
		"too many deletions and ends":             {deletes: 250, ends: 251, seconds: 1, field: "delete"},
		"an end in no time":                       {ends: 1, field: "end[0].active_deadline_seconds"},
		"an end in more time than a pod may have": {ends: 1, seconds: math.MaxInt32 + 1, field: "end[0].active_deadline_seconds"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := changesOf(func(_ *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
				if !tc.creates {
					d.Create = nil
				}
				d.Delete, d.End = make([]*jobpolicyv1.DeletePod, tc.deletes), ends(tc.ends, tc.seconds)
			})
			if err == nil || !strings.HasPrefix(err.Error(), tc.field+" ") {
				t.Errorf("got error %v, want one about %s", err, tc.field)
			}
		})
	}
}

// Of raised resources each part is checked, and each pod is named once at most.
func TestCheckRefusesRaisedPodsThatMakeNoSense(t *testing.T) {
	type spoiler = func(*jobpolicyv1.DecideJobRequest, *jobpolicyv1.DecideJobResponse)
	raised := func(spoil func(*jobpolicyv1.RaisedPods)) spoiler {
		return func(_ *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			r := &jobpolicyv1.RaisedPods{
				Indexes: ranges(0, 0), Step: 1, Multiplier: 2, Resource: jobpolicyv1.RaisedResource_RAISED_RESOURCE_MEMORY, Max: "8Gi",
			}
			spoil(r)
			d.Create.Raised = []*jobpolicyv1.RaisedPods{r}
		}
	}
	if err := changesOf(raised(func(*jobpolicyv1.RaisedPods) {})); err != nil {
		t.Error(err)
	}
	cases := map[string]struct {
		spoil spoiler
		field string
	}{
		"raised pods in no step":               {raised(func(r *jobpolicyv1.RaisedPods) { r.Step = 0 }), "create.raised[0].step"},
		"raised pods in too many steps":        {raised(func(r *jobpolicyv1.RaisedPods) { r.Step = 65 }), "create.raised[0].step"},
		"pods that are raised by nothing":      {raised(func(r *jobpolicyv1.RaisedPods) { r.Multiplier = 1 }), "create.raised[0].multiplier"},
		"pods that are raised by no number":    {raised(func(r *jobpolicyv1.RaisedPods) { r.Multiplier = math.NaN() }), "create.raised[0].multiplier"},
		"pods of which nothing is raised":      {raised(func(r *jobpolicyv1.RaisedPods) { r.Resource = 0 }), "create.raised[0].resource"},
		"pods that are raised without a bound": {raised(func(r *jobpolicyv1.RaisedPods) { r.Max = "" }), "create.raised[0].max"},
		"raised pods without indexes":          {raised(func(r *jobpolicyv1.RaisedPods) { r.Indexes = nil }), "create.raised[0].indexes:"},
		"raised indexes that are not created":  {raised(func(r *jobpolicyv1.RaisedPods) { r.Indexes = ranges(1, math.MaxInt32-1) }), "create.raised[0].indexes"},
		"raised indexes out of order":          {raised(func(r *jobpolicyv1.RaisedPods) { r.Indexes = ranges(1, 1, 0, 0) }), "create.raised[0].indexes.ranges[1]"},
		"indexes that are raised twice": {func(r *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
			raised(func(*jobpolicyv1.RaisedPods) {})(r, d)
			d.Create.Raised = append(d.Create.Raised, d.Create.Raised[0])
		}, "create.raised[1].indexes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := changesOf(tc.spoil); err == nil || !strings.HasPrefix(err.Error(), tc.field+" ") {
				t.Errorf("got error %v, want one about %s", err, tc.field)
			}
		})
	}
}

// Of the finished pods, each that the request lists may be deleted once, also while pods are created.
func TestCheckOfFinishedPods(t *testing.T) {
	cases := map[string]struct {
		uids []string
		want string
	}{
		"one":      {[]string{"a"}, ""},
		"another":  {[]string{"b"}, "delete_finished[0] "},
		"twice":    {[]string{"a", "a"}, "delete_finished[1] "},
		"too many": {make([]string, 501), "delete_finished has 501"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := changesOf(func(r *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) {
				r.FinishedPods = &jobpolicyv1.FinishedPods{First: []*jobpolicyv1.FinishedPod{{Uid: []byte("a")}}}
				for _, uid := range tc.uids {
					d.DeleteFinished = append(d.DeleteFinished, []byte(uid))
				}
			})
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
		})
	}
}
