set -x
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
(make -j16 > $OUT/build.log 2>&1 || tail -5 $OUT/build.log) &
(cd bench && timeout 100 python3 nets.py resnet50 mobilenetv2 >/dev/null 2>&1; timeout 100 python3 mkbert.py /tmp/bert.onnx >/dev/null 2>&1); ls -la build/bench/nets/*.onnx /tmp/bert.onnx
wait
set +x
python3 -c "import torch, torchvision; print(torch.__version__, torchvision.__version__)" 2>&1 | tail -1
export INGOT_NVRTC=$(python3 -c "import glob;print((glob.glob('/usr/local/cuda*/lib64/libnvrtc.so.1[23]')+glob.glob('/usr/local/lib/python3*/dist-packages/nvidia/*/lib/libnvrtc.so.1[23]')+glob.glob('/usr/lib/x86_64-linux-gnu/libnvrtc.so.1[23]')+[''])[0])")
echo nvrtc $INGOT_NVRTC; [ -z "$INGOT_NVRTC" ] && unset INGOT_NVRTC
for m in resnet50 mobilenetv2; do
 build/ingot run build/bench/nets/$m.onnx --march native -q -o /tmp/$m.ref.npz --engine c 2>&1 | tail -1
 for p in f32 f16 tf32; do
  echo "== $m $p"
  timeout 60 python3 bench/cuda.py --precision $p --kernels 14 --seconds 0.5 build/bench/nets/$m.onnx 2>&1 | tail -20
  build/ingot run build/bench/nets/$m.onnx --engine cuda --precision $p -q --keep-code -o /tmp/g.npz
  python3 -c "
import numpy as np
a=np.load('/tmp/g.npz');b=np.load('/tmp/$m.ref.npz')
for n in b.files: print(n,'max diff',np.abs(a[n]-b[n]).max(),'max',np.abs(b[n]).max())" 2>&1 | tail -1
 done
done
