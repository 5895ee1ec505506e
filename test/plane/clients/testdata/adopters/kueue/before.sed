# Prints Kueue's own functions under other names, to compare with them.
1i\
package job\
\
import (\
	"context"\
	"strconv"\
	"strings"\
\
	"github.com/go-logr/logr"\
	batchv1 "k8s.io/api/batch/v1"\
	"k8s.io/utils/ptr"\
	ctrl "sigs.k8s.io/controller-runtime"\
	"sigs.k8s.io/controller-runtime/pkg/client"\
\
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"\
)\

/^func (j \*Job) ReclaimablePods(/,/^}$/{
	s/) ReclaimablePods(/) reclaimablePodsBefore(/
	s/completedIndexesCount(/completedIndexesCountBefore(/
	p
}
/^func completedIndexesCount(/,/^}$/{
	s/^func completedIndexesCount(/func completedIndexesCountBefore(/
	p
}
/^func parseIndexRange(/,/^}$/p
