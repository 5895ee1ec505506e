# Prints Trainer's own function under another name, to compare with it.
1i\
package controller\
\
import (\
	"context"\
	"time"\
\
	"k8s.io/apimachinery/pkg/api/meta"\
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"\
	"k8s.io/utils/ptr"\
	ctrl "sigs.k8s.io/controller-runtime"\
	"sigs.k8s.io/controller-runtime/pkg/client"\
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"\
\
	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"\
	"github.com/kubeflow/trainer/v2/pkg/constants"\
	"github.com/kubeflow/trainer/v2/pkg/util/trainjob"\
)\

/^func (r \*TrainJobReconciler) reconcileDeadline(/,/^}$/{
	s/) reconcileDeadline(/) reconcileDeadlineBefore(/
	p
}
