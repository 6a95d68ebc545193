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
# its machine loses power
    n1 is not Ready
= Running, active: web-0, waiting: none
= Available False ActivePodNotReady: cannot determine whether pod web-0 is running: its Node n1 is unreachable
= Progressing False Steady: no handover in progress
= Degraded True NodeUnreachable: pod web-0 may be running its program on Node n1, which is unreachable, and no other pod starts until this one has stopped. If the machine is off, taint the Node: kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
# the control plane deletes the pods of the node
= Running, active: web-0, waiting: none
= Available False ActivePodNotReady: pod web-0 is being deleted
= Progressing False Steady: no handover in progress
= Degraded True NodeUnreachable: pod web-0 may be running its program on Node n1, which is unreachable, and no other pod starts until this one has stopped. If the machine is off, taint the Node: kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
# an administrator adds the out-of-service taint
  patch pod web-0: Release
    web-0 is deleted by pod garbage collection
    web-0 is created
    web-0 is bound to n2
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
