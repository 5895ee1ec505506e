package deferral_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/deferral"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	create = jobpolicyv1.Step_STEP_CREATE_PODS
	remove = jobpolicyv1.Step_STEP_DELETE_PODS
)

func TestAStepIsLeftUntilItsTime(t *testing.T) {
	at := time.Unix(100, 0).UTC()
	list := []*jobpolicyv1.Deferral{{Step: remove, Until: timestamppb.New(at)}}
	if until, asked := deferral.Until(list, remove); !asked || !until.Equal(at) {
		t.Errorf("deletions are left until %v, asked %v; want %v", until, asked, at)
	}
	if until, asked := deferral.Until(list, create); asked {
		t.Errorf("creation is left until %v, want not at all", until)
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	fine := timestamppb.New(time.Unix(100, 0))
	cases := map[string]struct {
		list []*jobpolicyv1.Deferral
		want []string
	}{
		"nothing":          {[]*jobpolicyv1.Deferral{{Step: create, Until: fine}, {Step: remove, Until: fine}}, nil},
		"an unknown step":  {[]*jobpolicyv1.Deferral{{Step: 99, Until: fine}}, nil},
		"no step, no time": {[]*jobpolicyv1.Deferral{{}}, []string{"0 step: is required", "0 until: is required"}},
		"no such time":     {[]*jobpolicyv1.Deferral{{Step: create, Until: &timestamppb.Timestamp{Nanos: -1}}}, []string{"0 until: must be a time between the years 1 and 9999"}},
		"a step twice":     {[]*jobpolicyv1.Deferral{{Step: create, Until: fine}, {Step: create, Until: fine}}, []string{"1 step: is also that of an earlier entry"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			deferral.Check(tc.list, func(index int, field, text string) { got = append(got, fmt.Sprintf("%d %s: %s", index, field, text)) })
			if !slices.Equal(got, tc.want) {
				t.Errorf("violations %q, want %q", got, tc.want)
			}
		})
	}
}
