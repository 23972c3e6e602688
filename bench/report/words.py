"""The Chinese of the performance table, by its English. What has no word in it (`fp32`, `Flower`) stands as it is."""

CHINESE = {
    # heads and sentences around the table
    "What": "项目",
    "Other": "对照",
    "Ratio": "比较",
    "Target": "目标",
    "Commit": "提交",
    "met": "达到",
    "missed": "未达到",
    "not measured yet": "尚未测量",
    "Measured by `make bench` on {}.": "由 `make bench` 在以下机器上测得：{}。",
    "Workers and links are made on it: {} of a core for each worker, network namespaces joined at the rate named.": (
        "工作端和线路都在这台机器上模拟：每个工作端 {} 个核，网络命名空间按所写速率相连。"
    ),
    "Beside: {}.": "对照：{}。",
    "Each ratio is from one measurement of both.": "每个比值都出自对双方的同一次测量。",
    "Pictures: {}.": "图：{}。",
    "What the others do better:": "别人做得更好的地方：",
    ": ": "：",
    ", ": "、",
    " ({})": "（{}）",
    # the lines
    "Samples/s, 1 worker, 100 Mbit/s": "每秒样本数，1 个工作端，100 Mbit/s",
    "Samples/s, 2 workers, 100 Mbit/s": "每秒样本数，2 个工作端，100 Mbit/s",
    "Samples/s, 4 workers, 100 Mbit/s": "每秒样本数，4 个工作端，100 Mbit/s",
    "Samples/s, 2 PCs, 100 Mbit/s": "每秒样本数，2 台电脑，100 Mbit/s",
    "Samples/s, 2 PCs, 10 Mbit/s": "每秒样本数，2 台电脑，10 Mbit/s",
    "Time to the same loss, 2 workers, 100 Mbit/s": "达到同一损失的时间，2 个工作端，100 Mbit/s",
    "Time to the same loss, 2 workers, 10 Mbit/s": "达到同一损失的时间，2 个工作端，10 Mbit/s",
    "Time that PCs of speed 1, 1/2, 1/4 and 1/4 spend computing": ("速度为 1、1/2、1/4、1/4 的电脑用于计算的时间"),
    "Time of their round; divided perfectly by speed it is 1": ("它们一轮的时间；按速度完美划分时为 1"),
    "Rounds, from the first that feels a PC half as fast, to one that fits it": (
        "一台电脑变慢一半后，从最先受影响的一轮到分配重新合适，共几轮"
    ),
    "Error of the minutes estimated before a run, lowest / highest": "训练前估计的分钟数的误差，最低 / 最高",
    "Bytes of a worker in a round of 1 million values, int8 / int4": "一个工作端一轮的字节数，一百万个值，int8 / int4",
    "Exchange of 1 million values, int8, 100 Mbit/s": "交换一百万个值，int8，100 Mbit/s",
    "Exchange of 1 million values, int4, 100 Mbit/s": "交换一百万个值，int4，100 Mbit/s",
    "Round without training, 2 workers, fp32, 0.1 / 1 / 10 million values": (
        "不训练的一轮，2 个工作端，fp32，10 万 / 100 万 / 1000 万个值"
    ),
    "The same, fp32, against the sockets alone": "同上，fp32，与单纯的套接字相比",
    "The same, int8, against the sockets alone": "同上，int8，与单纯的套接字相比",
    "Memory of the master, 16 workers instead of 8": "主控的内存，16 个工作端比 8 个多",
    "AdamW step of 4 million values": "四百万个值的 AdamW 步",
    "Weighted sum of 4 million values": "四百万个值的加权和",
    "4 million values to int8": "四百万个值转为 int8",
    "Samples/s of one core, 1 million parameters, SGD / momentum / AdamW": (
        "一个核的每秒样本数，一百万个参数，SGD / momentum / AdamW"
    ),
    "Samples/s of one core, 9,000 parameters, SGD / momentum / AdamW": (
        "一个核的每秒样本数，九千个参数，SGD / momentum / AdamW"
    ),
    "How far the loss of int8 / int4 is from fp32's, in spreads over seeds": (
        "int8 / int4 的损失与 fp32 之差，以各种子间的极差为单位"
    ),
    "MNIST accuracy, rounds of 50 local steps, int4": "MNIST 准确率，每轮 50 个本地步，int4",
    "Digits accuracy while 2 of 8 workers send NaN / -10 times / flipped deltas": (
        "手写数字准确率，8 个工作端中 2 个发送 NaN / 负 10 倍 / 反号的变化量"
    ),
    # beside whom, ratios, targets, reasons
    "one PC alone": "单独一台电脑",
    "1 worker": "1 个工作端",
    "Hivemind, 8 bit": "Hivemind，8 位",
    "PyTorch DDP, gloo": "PyTorch DDP，gloo",
    "bare ZeroMQ": "单纯的 ZeroMQ",
    "synchronised at every step": "每一步都同步",
    "plain mean": "普通平均",
    "{}x as fast": "速度 {} 倍",
    "{}x as long": "时间 {} 倍",
    "{}x as soon": "所需时间为对照的 1/{}",
    "{}x fewer bytes": "对照的字节数为其 {} 倍",
    "{} points below no poison": "比没有投毒低 {} 个百分点",
    "at least {}": "至少 {}",
    "at most {}": "至多 {}",
    "more than {}": "多于 {}",
    "a round of MAHE also encrypts, checks each delta and is over only when its checkpoint is written": (
        "MAHE 的一轮还要加密、检查每个变化量，并且检查点写好才算结束"
    ),
    "there nothing is added up, checked or written": "那里不求和、不检查、也不写盘",
    "both wait for memory": "两者都在等内存",
    "one PC ends it in seconds, and before the start the page says that no second one is needed": (
        "一台电脑几秒就能完成，开始之前页面就说明不需要第二台"
    ),
}
