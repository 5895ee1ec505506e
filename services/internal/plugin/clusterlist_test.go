package plugin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A list that expires between two pages is read at once.
func TestExpiredListIsReadAgain(t *testing.T) {
	var asked []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		asked = append(asked, query.Get("limit")+query.Get("continue"))
		w.Header().Set("Content-Type", "application/json")
		list := &batchv1.JobList{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}}
		add := func(name string) {
			list.Items = append(list.Items, batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		switch {
		case query.Get("continue") != "":
			status := apierrors.NewResourceExpired("too old").Status()
			status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			w.WriteHeader(int(status.Code))
			_ = json.NewEncoder(w).Encode(status)
			return
		case query.Get("limit") != "":
			list.Continue = "next"
			add("a")
		default:
			add("a")
			add("b")
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(web.Close)
	batch, err := client(&rest.Config{Host: web.URL}, "/apis", batchv1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := (&clusterReader{batch: batch}).Jobs(t.Context(), "")
	if err != nil || len(jobs) != 2 || jobs[0].Name != "a" || jobs[1].Name != "b" {
		t.Errorf("jobs %v, error %v; the API server was asked for %q", jobs, err, asked)
	}
}
