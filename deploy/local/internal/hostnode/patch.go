package hostnode

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// statusPatch renders a whole status as a strategic merge patch. Conditions merge by type, so those of other components stay; the
// texts that a condition lacks are nulls, because a merge would keep the old ones. The uid makes the API server refuse
// the patch for another pod of the same name.
func statusPatch(uid types.UID, s *corev1.PodStatus) ([]byte, error) {
	type condition struct {
		corev1.PodCondition
		Reason  *string `json:"reason"`
		Message *string `json:"message"`
	}
	type status struct {
		*corev1.PodStatus
		Conditions []condition `json:"conditions"`
	}
	body := struct {
		Metadata map[string]types.UID `json:"metadata"`
		Status   status               `json:"status"`
	}{
		Metadata: map[string]types.UID{"uid": uid},
		Status:   status{PodStatus: s, Conditions: []condition{}},
	}
	for _, c := range s.Conditions {
		body.Status.Conditions = append(body.Status.Conditions, condition{c, textOrNull(c.Reason), textOrNull(c.Message)})
	}
	return json.Marshal(body)
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
