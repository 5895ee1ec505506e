package plugin

import (
	"path/filepath"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/testenv"
)

func TestNamesAreCompleted(t *testing.T) {
	api := testenv.StartAPI(t, &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "backup"},
	})
	const onlyNames = "\n:4\n" // cobra's directive: no names of files
	cases := map[string]struct {
		args []string
		want string
	}{
		"explain":                   {[]string{"explain", ""}, "job/backup" + onlyNames},
		"wait":                      {[]string{"wait", "job/b"}, "job/backup" + onlyNames},
		"timeline, a second one":    {[]string{"timeline", "job/a", ""}, onlyNames[1:]},
		"next takes no Job":         {[]string{"next", ""}, onlyNames[1:]},
		"simulate --from":           {[]string{"simulate", "--from", ""}, "job/backup" + onlyNames},
		"check --fail-on":           {[]string{"check", "--fail-on", ""}, "note\nwarning\nerror" + onlyNames},
		"a cluster that is no more": {[]string{"explain", "--kubeconfig", filepath.Join(t.TempDir(), "none"), ""}, onlyNames[1:]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", api.Kubeconfig)
			if code, out, _ := runApart(t, append([]string{"__complete"}, tc.args...)...); code != cli.ExitOK || out != tc.want {
				t.Errorf("exit code %d, completions %q, want %q", code, out, tc.want)
			}
		})
	}
}
