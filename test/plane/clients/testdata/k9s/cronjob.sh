# A CronJob is started by hand, suspended and resumed. Its Job, the pod of that and what this said are looked at.
kubectl create cronjob a --image="${IMAGE:-none}" --schedule='0 0 1 1 *' -- sh -c 'echo well done; sleep 8'
k9s_shows cronjobs
see '│ a .* false +0 '
press t
see 'Trigger CronJob: [^ ]+'
press tab enter
until [ -n "$(kubectl get events --field-selector=reason=UnexpectedJob -o name)" ]; do sleep 0.3; done
press s
see '<Suspend>'
press tab enter
see '│ a .* true +0 '
until_value cronjob/a .spec.suspend true

press enter
see 'jobs\([^)]*/a\)\[1\]'
see '│ a-manual-.* 1/1'
press enter
see '│ a-manual-.* Completed'
press l
see 'Logs\(.*\)'
see 'well done'
press esc
see 'pods\(.*\)\[1\]'
press esc
see 'jobs\([^)]*/a\)\[1\]'
press esc
see '│ a .* true +0 '

press s
see '<Resume>'
press tab enter
see '│ a .* false +0 '
until_value cronjob/a .spec.suspend false
press ctrl-d
see 'Delete cronjobs .*\?'
press tab enter
see 'cronjobs\(.*\)\[0\]'
until_gone jobs,pods
quit
