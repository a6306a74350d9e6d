"""Languages of which the words of grammar alone are known: data alone."""

from indexer.language.base import Grammar, Language

VIETNAMESE = Language(
    name="Vietnamese",
    grammar=Grammar(
        grammar_words=(
            "là và của có không được cho các một những với trong để này người đã đang sẽ khi ở từ đến tôi chúng "
            "anh chị thì mà ra vào lên về như nhưng cũng rất nhà ngày mỗi phải vì ai gì nào"
        ),
    ),
)
INDONESIAN = Language(
    name="Indonesian",
    grammar=Grammar(
        grammar_words=(
            "yang dan di ke dari untuk dengan ini itu tidak ada akan pada saya kami kita adalah sudah bisa juga "
            "atau karena oleh setiap harus belum lebih hanya kalau mereka dia anda"
        ),
    ),
)
DANISH = Language(
    name="Danish or Norwegian",
    grammar=Grammar(
        grammar_words=(
            "og at det som en et er ikke for med på af av den til har jeg vi du han hun de skal var kan fra men "
            "om eller når hvor vår vores min alltid altid aldri aldrig hver etter efter før også seg sig hos"
        ),
    ),
)
FINNISH = Language(
    name="Finnish",
    grammar=Grammar(
        grammar_words=(
            "ja on ei se että hän oli mutta kun myös joka ovat olen tai niin kuin vain jos mitä minun meidän "
            "minä me aina ennen jälkeen kanssa pitää tämä sen ole"
        ),
    ),
)
CZECH = Language(
    name="Czech or Slovak",
    grammar=Grammar(
        grammar_words=(
            "a je se na že to s z do v ve pro jak ale jsem jsme jsou byl byla není nebo podle který která když "
            "kde každý vždy nikdy po od si sa aby pre keď"
        ),
    ),
)
HUNGARIAN = Language(
    name="Hungarian",
    grammar=Grammar(
        grammar_words=(
            "az és hogy nem egy meg csak ha már még mert minden vagy volt lesz mint ezt azt után előtt mindig "
            "soha nekem nálunk kell"
        ),
    ),
)
ROMANIAN = Language(
    name="Romanian",
    grammar=Grammar(
        grammar_words=(
            "și în de la nu este cu pe care un o să din pentru mai ce sau când sunt au am fost dar după înainte "
            "fiecare mereu niciodată noastră meu mea lui ei al ale"
        ),
    ),
)
