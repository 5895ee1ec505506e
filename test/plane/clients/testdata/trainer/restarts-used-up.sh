# Its JobSet begins again once, and fails.
runtime a 'sleep 2; exit 1' 'failurePolicy: {maxRestarts: 1},'
trainjob a ''
until_true trainjob/a Failed
