"""Chinese words by which a secret is known: data alone."""

from indexer.language.base import Secrets

CHINESE_SECRETS = Secrets(
    passwords="密码|密碼|口令",
    password_hints=("密码", "密碼", "口令"),
    unsigned_passwords_within="密码|密碼|口令",
    tokens="密钥|密鑰|私钥|私鑰|令牌|凭证",
    token_hints=("密钥", "密鑰", "私钥", "私鑰", "令牌", "凭证"),
    unsigned_tokens="密钥|令牌|私钥",
    codes="验证码|驗證碼|校验码|动态码|门禁码|门锁码|取件码|提取码|安全码|解锁码",
    code_hints=("码", "碼"),
    unsigned_codes_within="验证码|驗證碼|校验码|动态码|门禁码|取件码",
    phrases="密码短语|口令短语",
    phrase_hints=("短语",),
    seeds="助记词|助記詞|恢复短语|种子短语",
    seed_hints=("助记词", "助記詞", "短语"),
    accounts="银行卡号?|銀行卡號?|信用卡号?|借记卡号?|储蓄卡号?|卡号|卡號|银行账[号户]|银行帳號",
    account_hints=("银行卡", "銀行卡", "卡号", "卡號", "账号", "帳號", "账户"),
    identities="身份[证證]",
    identity_hints=("身份证", "身份證"),
    gives_within="是|为|為|改成了?|换成了?|改为了?|换为|设为|設為|设成",
    plain_gives_within="是",
    announcements="如下|是",
    no_values_within=(
        "必填|选填|可选|请|不|无|没|至少|至多|最少|最多|长度|需要?|必须|已|忘|错|重置|修改|为空|规则|策略|政策|由|可|区分|同|见|如|包含|每|怎么|什么|多少"
        "|要|应|字符|字母|数字|保存|存|过期|正确|安全|太|很|有|用|在|是|和|或|与|被|从|找|问|改|换|输入|设置|默认|管理|加密|登录|强度"
    ),
    labels="密码|口令",
    measures="个|位|天|月|年|小时|分钟|秒|次|字",
    identified_within="单号|编号|订单|条码|电话|手机",
    id_signs="号|码",
)
