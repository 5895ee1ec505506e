package policyserver

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/testenv"
)

func TestOverlongListIsFoundBeforeDecoding(t *testing.T) {
	one := (&jobpolicyv1.DecideJobRequest{}).ProtoReflect().Descriptor()
	many := (&jobpolicyv1.ChoosePodsToDeleteRequest{}).ProtoReflect().Descriptor()
	rows := func(n int) *jobpolicyv1.DecideJobRequest {
		req := &jobpolicyv1.DecideJobRequest{}
		for range n {
			req.UnaccountedPods = append(req.UnaccountedPods, &jobpolicyv1.UnaccountedPod{})
		}
		return req
	}
	pods := func(n int) *jobpolicyv1.ScaleDown {
		return &jobpolicyv1.ScaleDown{Pods: slices.Repeat([]*jobpolicyv1.ActivePod{{}}, n)}
	}
	long := rows(maxEntries + 1)
	cases := map[string]struct {
		message proto.Message
		as      protoreflect.MessageDescriptor
		want    string
	}{
		"a list at the limit":    {message: rows(maxEntries), as: one, want: ""},
		"a list above the limit": {message: long, as: one, want: "unaccounted_pods"},
		"a list of bytes above the limit": {
			message: &jobpolicyv1.DecideJobRequest{ConfirmedReleases: make([][]byte, maxEntries+1)}, as: one,
			want: "confirmed_releases",
		},
		"a list above the limit further in": {
			message: &jobpolicyv1.ChoosePodsToDeleteRequest{Jobs: []*jobpolicyv1.ScaleDown{{}, pods(maxEntries + 1)}}, as: many,
			want: "jobs.pods",
		},
		"two lists that are only together above the limit": {
			message: &jobpolicyv1.ChoosePodsToDeleteRequest{Jobs: []*jobpolicyv1.ScaleDown{pods(maxEntries), pods(maxEntries)}},
			as:      many,
			want:    "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := proto.Marshal(tc.message)
			if err != nil {
				t.Fatal(err)
			}
			if got := measureMessage(b, tc.as, math.MaxInt64).overlong; got != tc.want {
				t.Errorf("overlong = %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzMeasureStandsAnyBytes(f *testing.F) {
	for _, seed := range []string{"", "\xff", "\x3a\x00", "\x3a\x7f", "\x1a\x02\x0a\x7f", strings.Repeat("\x3b", 1000)} {
		f.Add([]byte(seed))
	}
	m := (&jobpolicyv1.DecideJobRequest{}).ProtoReflect().Descriptor()
	f.Fuzz(func(t *testing.T, b []byte) {
		got := measureMessage(b, m, math.MaxInt64)
		if got.overlong != "" && len(b) < maxEntries {
			t.Errorf("overlong = %q in %d bytes", got.overlong, len(b))
		}
		if got.bytes < structBytes(m) {
			t.Errorf("%d bytes, want at least those of an empty message", got.bytes)
		}
	})
}

// heapOf is what f keeps on the heap.
func heapOf(f func() any) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// What decoding takes is known before it is done: no less than it turns out to be,
// and not so much more that valid requests are refused.
func TestMeasureFollowsWhatDecodingTakes(t *testing.T) {
	row := &jobpolicyv1.UnaccountedPod{
		Uid: testenv.UID(1), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, FinishedTime: timestamppb.New(testenv.Now),
	}
	detailed := proto.CloneOf(row)
	detailed.Failure = &jobpolicyv1.PodFailure{PodName: "pi-abcde"}
	for range 40 {
		detailed.Failure.ContainerExits = append(detailed.Failure.ContainerExits, &jobpolicyv1.ContainerExit{ContainerName: "main", ExitCode: 1})
	}
	cases := map[string]*jobpolicyv1.DecideJobRequest{
		"many rows":           {UnaccountedPods: slices.Repeat([]*jobpolicyv1.UnaccountedPod{row}, 100_000)},
		"rows of many exits":  {UnaccountedPods: slices.Repeat([]*jobpolicyv1.UnaccountedPod{detailed}, 2000)},
		"empty rows":          {UnaccountedPods: slices.Repeat([]*jobpolicyv1.UnaccountedPod{{}}, 100_000)},
		"many confirmed pods": {ConfirmedReleases: slices.Repeat([][]byte{testenv.UID(2)}, 100_000)},
		"a long text":         {RequestId: strings.Repeat("x", 1<<20)},
	}
	for name, req := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := proto.Marshal(req)
			if err != nil {
				t.Fatal(err)
			}
			measured := measureMessage(b, req.ProtoReflect().Descriptor(), math.MaxInt64).bytes
			for _, most := range []int64{measured / 10, measured - 1, measured} {
				if got := measureMessage(b, req.ProtoReflect().Descriptor(), most).bytes; (got > most) != (measured > most) {
					t.Errorf("measured %d bytes with a limit of %d, and %d without", got, most, measured)
				}
			}
			took := heapOf(func() any {
				decoded := &jobpolicyv1.DecideJobRequest{}
				if err := proto.Unmarshal(b, decoded); err != nil {
					t.Error(err)
				}
				return decoded
			})
			runtime.KeepAlive(b)
			if measured < took || measured > 2*took+1<<10 {
				t.Errorf("measured %d bytes of %d on the wire, decoding took %d", measured, len(b), took)
			}
			t.Logf("%d bytes on the wire: measured %d, took %d", len(b), measured, took)
		})
	}
}
