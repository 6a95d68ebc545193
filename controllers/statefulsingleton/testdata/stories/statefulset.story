# the user creates the StatefulSingleton
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
= Running, active: none, waiting: none
= Available False NoPods: no pod matches the selector
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user creates a StatefulSet with replicas 1, RollingUpdate
    web-0 is created
    web-0 is bound to n1
  patch status of statefulsingleton db: Holder, web-0, epoch 1
  patch pod web-0: Grant, epoch 1
  set a condition of pod web-0: Ready, True
    web-0 waits at its gate
    web-0 runs its program
  patch pod web-0: Remind, epoch 1
= Running, active: web-0, waiting: none
= Available True ActivePodReady: pod web-0 is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user sets image two
    web deletes web-0
    web-0 stops
  patch pod web-0: Release
    web-0 is created
    web-0 is bound to n1
  patch status of statefulsingleton db: Holder, web-0, epoch 2
  patch pod web-0: Grant, epoch 2
  set a condition of pod web-0: Ready, True
    web-0 waits at its gate
    web-0 runs its program
  patch pod web-0: Remind, epoch 2
= Running, active: web-0, waiting: none
= Available True ActivePodReady: pod web-0 is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
