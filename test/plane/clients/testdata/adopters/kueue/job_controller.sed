# What reclaimable_pods.go does instead goes from Kueue's job_controller.go, and so do the imports that only it needed.
/^	"strings"$/d
/^	"github.com\/go-logr\/logr"$/d
/^func (j \*Job) ReclaimablePods(/,/^}$/d
/^\/\/ completedIndexesCount /,/^}$/d
/^\/\/ parseIndexRange /,/^}$/d
